"""What was recorded last before a recorder began. Owns how far back is looked; needed so that nothing is stored twice.

A recorder that died, or left before its senders knew how far it was, leaves messages on disk that are offered to the
next one again. Whoever goes on in the same folder finds them here.
"""

from __future__ import annotations

from typing import Final

from rvq.errors import WireError
from rvq.journal.messages import ids_of
from rvq.journal.reader import JournalReader
from rvq.journal.runs import RunSet

LATELY_S: Final = 2.0
"""Of recording, back from the newest entry: receivers report every 20 ms, and in each heartbeat what got lost."""


def stored_lately(reader: JournalReader, label: str, seconds: float = LATELY_S) -> dict[int, RunSet]:
    """The messages of a label that were heard in the last seconds of which there is anything, by sender."""
    tail = reader.tail(label)
    newest = max((_heard_last(reader, label, end.segment) for end in tail.values()), default=0.0)
    found: dict[int, RunSet] = {}
    for chain, start in reader.seek_time(label, newest - seconds).items():
        if chain not in tail:
            continue
        for entry in reader.entries(label, start, tail[chain]):
            try:
                ids = list(ids_of(entry))
            except WireError:
                continue  # of a later version, perhaps: then it is stored again
            for sender, first, last in ids:
                found.setdefault(sender, RunSet()).add(first, last)
    return found


def _heard_last(reader: JournalReader, label: str, name: str) -> float:
    with reader.segment(label, name) as segment:
        return segment.head.watermark.extent.last
