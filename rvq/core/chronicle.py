"""The control frames of a label that are history. Owns which of them are news, and keeps them until they are taken.

With the messages, they tell who owned what and who did what: stamps, tables, what receivers say that they did, and who
came and went. A bus on which nothing happens adds nothing.
"""

from __future__ import annotations

from collections.abc import Hashable

from rvq import limits
from rvq.core.machine import Address
from rvq.core.stats import Stats
from rvq.wire.frames import Alive, Control, Goodbye, Handled, HandOver, SenderAlive, SenderGoodbye, Stamp, TableFrame

Kept = tuple[bytes, Address]
"""A datagram as it came, and from where."""


class Chronicle:
    """What was heard since it was taken last."""

    def __init__(self, label: str, stats: Stats) -> None:
        self._label = label
        self._stats = stats
        self._kept: list[Kept] = []
        self._bytes = 0
        self._said: dict[Hashable, Hashable] = {}
        """What each frame that was kept is about, and what it said of that: the same again is no news."""

    def note(self, frame: Control, datagram: bytes, source: Address) -> None:
        """A control frame came; kept if it is history, and news."""
        if getattr(frame, "label", self._label) != self._label:
            return  # another label with the same tag
        about, said = _news(frame)
        if about is None or (said is not None and self._said.get(about) == said):
            return
        size = len(datagram) + limits.DATAGRAM_COST_BYTES
        if self._bytes + size > limits.HISTORY_BYTES:
            self._stats.unrecorded += 1
            return
        self._bytes += size
        self._kept.append((datagram, source))
        if said is not None:
            self._said.pop(about, None)
            self._said[about] = said
            if len(self._said) > limits.REMEMBERED_MAX:
                del self._said[next(iter(self._said))]

    def take(self) -> list[Kept]:
        """All of it, the oldest first."""
        kept, self._kept = self._kept, []
        self._bytes = 0
        return kept

    def __len__(self) -> int:
        return len(self._kept)

    def check_invariants(self) -> None:
        assert self._bytes == sum(len(datagram) + limits.DATAGRAM_COST_BYTES for datagram, _ in self._kept)
        assert self._bytes <= limits.HISTORY_BYTES
        assert len(self._said) <= limits.REMEMBERED_MAX


def _news(frame: Control) -> tuple[Hashable, Hashable]:
    """What a frame is about, and what it says of it. (None, None) if it is no history; (..., None) if always news."""
    match frame:
        case Handled():
            return (Handled, frame.source), None
        case Stamp():
            return (Stamp, frame.source, frame.number), True
        case TableFrame():
            return (TableFrame, frame.group, frame.version), True
        case HandOver():
            return (HandOver, frame.source, frame.stream, frame.group, frame.stamp, frame.slot, frame.first), frame.to
        case SenderGoodbye() | Goodbye():
            return (type(frame), frame.source), True
        case Alive():
            return (Alive, frame.source), (frame.leaving, frame.version)
        case SenderAlive():
            groups = tuple((state.group, state.done_to, state.held) for state in frame.groups)
            return (SenderAlive, frame.source), (frame.newest_stamp, groups)
        case _:
            return None, None
