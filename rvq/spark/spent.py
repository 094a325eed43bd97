"""A journal that one query reads: its hours are deleted when they are read. Owns which those are."""

from __future__ import annotations

import logging
from pathlib import Path

from rvq.errors import JournalError
from rvq.journal import JournalReader, SegmentName, expire
from rvq.journal.places import part_end
from rvq.spark.offsets import Offsets

logger = logging.getLogger("rvq.spark")

HOUR_S = 3600.0


def expire_read(journal: JournalReader, read: Offsets, keep: float, now: float) -> list[Path]:
    """Deletes the hours that were over `keep` seconds ago and that are read as a whole. Which they were."""
    before = min([now - keep, *_unread(journal, read)])
    try:
        return expire(journal.root, before)
    except JournalError as error:
        logger.warning("journal %s: what was read stays: %s", journal.root, error)
        return []


def _unread(journal: JournalReader, read: Offsets) -> list[float]:
    """For each recorder that has more: when the first hour of it begins that is not read as a whole."""
    found = []
    for label in journal.labels():
        head = journal.head(label)
        for chain, end in journal.tail(label).items():
            at = read.get((label, chain), head.get(chain))
            if at is not None and at != end:
                name = SegmentName.parse(at.segment)
                assert name is not None, "an offset that was read names a segment"
                found.append(part_end(name.part) - HOUR_S)
    return found
