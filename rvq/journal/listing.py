"""What a journal has, hour by hour. Owns counting it from the heads of segments; reads no block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from typing import NamedTuple

from rvq.errors import JournalDamaged, JournalExpired
from rvq.journal.layout import State
from rvq.journal.reader import JournalReader


class Listed(NamedTuple):
    """One hour of a label, as far as it is synced."""

    label: str
    part: str
    """YYYYMMDDHH, in UTC."""
    recorders: int
    segments: int
    messages: int
    bytes: int
    first_at: float | None
    """When the first of it was heard; None if nothing was."""
    last_at: float | None
    open: bool
    """A recorder is at it, or died over it."""
    damaged: int
    """Segments of which not even the head can be read: they are in no other number."""


def listed(reader: JournalReader) -> Iterator[Listed]:
    """Every hour of every label, in order."""
    for label in reader.labels():
        for part, names in groupby(reader.segments(label), key=lambda name: name.part):
            extents, recorders, is_open, damaged = [], set(), False, 0
            for name in names:
                with suppress(JournalExpired):
                    try:
                        with reader.segment(label, name) as segment:
                            watermark = segment.head.watermark
                    except JournalDamaged:
                        damaged += 1
                        continue
                    extents.append(watermark.extent)
                    recorders.add(name.recorder)
                    is_open = is_open or watermark.state is not State.SEALED
            heard = [extent for extent in extents if extent.last >= extent.first]
            yield Listed(
                label,
                part,
                len(recorders),
                len(extents),
                sum(extent.rows for extent in extents),
                sum(extent.length for extent in extents),
                min((extent.first for extent in heard), default=None),
                max((extent.last for extent in heard), default=None),
                is_open,
                damaged,
            )
