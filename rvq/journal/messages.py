"""The messages in a journal. Owns reading them out of entries, in the order in which they were heard, each once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvq.errors import JournalDamaged, WireError
from rvq.journal.compare import Ids
from rvq.journal.entries import Entry, EntryKind
from rvq.journal.reader import Ends, JournalReader
from rvq.journal.runs import RunSet
from rvq.wire.records import Content
from rvq.wire.stored import StoredFrame, read_stored


class Recorded(NamedTuple):
    """One message as it was recorded."""

    label: str
    sender: int
    sequence: int
    sent_at: float
    content: Content

    @property
    def id(self) -> str:
        """As `Message.id` is."""
        return f"{self.sender:016x}-{self.sequence}"


def frame_of(entry: Entry) -> StoredFrame | None:
    """What messages an entry has; None if it is something else. Raises WireError."""
    if entry.kind >= EntryKind.CONTROL:
        return None
    return read_stored(entry.kind, entry.flags, bytes(entry.payload))


def ids_of(entry: Entry) -> Iterable[Ids]:
    """Which messages an entry has, for `compare`. Raises WireError."""
    frame = frame_of(entry)
    return () if frame is None else [Ids(frame.stream, *run) for run in _runs(frame.sequences)]


def _runs(sequences: Sequence[int]) -> Iterator[tuple[int, int]]:
    if isinstance(sequences, range) and sequences.step == 1:
        yield sequences[0], sequences[-1]
        return
    first = before = sequences[0]
    for _, sequence in pairwise(sequences):
        if sequence != before + 1:
            yield first, before
            first = sequence
        before = sequence
    yield first, before


Wanted = Callable[[int, Sequence[int]], bool]
"""Is there anything among these sequences of a sender? What is not is not unpacked."""


def messages(
    reader: JournalReader,
    label: str,
    *,
    since: float | None = None,
    until: Ends | None = None,
    wanted: Wanted | None = None,
) -> Iterator[Recorded]:
    """All messages of a label up to what is synced now, or up to `until`, from those on that were heard at `since`.

    In the order in which recorders heard them; those of one sender and recorder in the order of their sequences, but
    for what was repaired. What two recorders have, because one took over from the other, comes once.
    """
    heads = reader.head(label) if since is None else reader.seek_time(label, since)
    tail = reader.tail(label) if until is None else until
    chains = [reader.entries(label, start, tail[chain]) for chain, start in heads.items() if chain in tail]
    seen: dict[int, RunSet] = {}
    for entry in heapq.merge(*chains, key=_heard_at):
        try:
            frame = frame_of(entry)
        except WireError as error:
            raise JournalDamaged(reader.root, 0, f"an entry of {label} cannot be read ({error})") from error
        if frame is None or (since is not None and entry.heard_at < since):
            continue
        if wanted is not None and not wanted(frame.stream, frame.sequences):
            continue
        known = seen.setdefault(frame.stream, RunSet())
        for sequence, content in zip(frame.sequences, frame.contents(), strict=True):
            if content is not None and not known.has(sequence):
                known.add(sequence, sequence)
                yield Recorded(label, frame.stream, sequence, frame.sent_at, content)


def _heard_at(entry: Entry) -> float:
    return entry.heard_at
