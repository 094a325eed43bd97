"""An observer: what everyone says goes in, and a picture comes out. Says nothing itself, so nobody knows of it.

It hears the directory, where all ends introduce themselves, and of each label found there the control address. It takes
no frames with messages: it costs the same however much is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rvq import limits
from rvq.core.about import ABOUT_S, pace
from rvq.core.machine import Address, Datagram, Wall
from rvq.core.naps import Naps
from rvq.core.observed.happenings import Happenings, hex_id
from rvq.core.observed.label import GONE_S, SeenLabel
from rvq.errors import BadLabel, WireError
from rvq.names import check_label
from rvq.timings import Timings
from rvq.wire.codec import decode_control, peek
from rvq.wire.frames import About, FrameType, label_tag

LOOK_S = 0.1
"""Pause between looks for who is silent."""
COMPLETE_S = 0.2
"""After the pause between introductions, all must have introduced themselves, but for timers that are late."""

_OBSERVED = frozenset(
    {
        FrameType.SENDER_ALIVE,
        FrameType.SENDER_GOODBYE,
        FrameType.ALIVE,
        FrameType.TABLE,
        FrameType.GOODBYE,
        FrameType.ABOUT,
    }
)


class ObserverMachine:
    """Sees who is on a bus and what they do. Driven like any other machine, but has nothing to send.

    labels: these only; all that introduce themselves if none are named.  bus: facts of the bus, for the picture.
    """

    def __init__(
        self,
        labels: Iterable[str] = (),
        *,
        timings: Timings,
        now: float,
        wall_offset: float = 0.0,
        bus: Mapping[str, Any] | None = None,
    ) -> None:
        self.wall = Wall(wall_offset)
        self.bad_frames = 0
        self.changes = 0
        """Counts what was heard: whoever looks sees whether there is anything new."""
        self.follows = 0
        """Counts what labels came and went: whoever drives it sees that there are others to listen to."""
        self._named = tuple(dict.fromkeys(map(check_label, labels)))[: limits.OBSERVED_LABELS_MAX]
        self._timings = timings
        self._bus = dict(bus or {})
        self._happenings = Happenings()
        self._labels: dict[str, SeenLabel] = {}
        self._by_tag: dict[int, list[SeenLabel]] = {}
        self._naps = Naps(timings.heartbeat)
        self._since = now
        self._look_at = now
        for label in self._named:
            self._follow(now, label)

    # --- what is heard --------------------------------------------------------------------------------------------

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that it follows: whoever drives it listens to their control addresses."""
        return tuple(self._labels)

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came, from the directory or a control address. Bad ones are counted."""
        self._notice_nap(now)
        try:
            kind, tag = peek(datagram)
            if kind not in _OBSERVED or (kind != FrameType.ABOUT and tag not in self._by_tag):
                return
            frame = decode_control(datagram)
            label = getattr(frame, "label", "")
            if isinstance(frame, About):
                self._introduced(now, label, tag)
        except WireError:
            self.bad_frames += 1
            return
        seen = self._labels.get(label)
        if seen is not None:
            self.changes += 1
            seen.hear(now, frame, source)

    def _introduced(self, now: float, label: str, tag: int) -> None:
        if label in self._labels or self._named or len(self._labels) >= limits.OBSERVED_LABELS_MAX:
            return
        try:
            check_label(label)
        except BadLabel as error:
            raise WireError("no label") from error
        if tag != label_tag(label):
            raise WireError("a label with the tag of another")
        self._follow(now, label)

    def _follow(self, now: float, label: str) -> None:
        self.follows += 1
        seen = self._labels[label] = SeenLabel(label, self._timings, self.wall, self._happenings, now)
        self._by_tag.setdefault(label_tag(label), []).append(seen)

    def _forget(self, seen: SeenLabel) -> None:
        self.follows += 1
        del self._labels[seen.label]
        tag = label_tag(seen.label)
        self._by_tag[tag].remove(seen)
        if not self._by_tag[tag]:
            del self._by_tag[tag]

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Look for who is silent."""
        self._notice_nap(now)
        for seen in list(self._labels.values()):
            seen.expire(now)
            if not seen.ends and seen.label not in self._named and now > seen.heard_at + GONE_S:
                self._forget(seen)
        self._look_at = now + LOOK_S
        self._naps.expect(self._look_at)

    def next_deadline(self) -> float:
        return self._look_at

    def take_outgoing(self) -> list[Datagram]:
        """Nothing, ever."""
        return []

    def _notice_nap(self, now: float) -> None:
        nap = self._naps.slept(now)
        if nap:
            for seen in self._labels.values():
                seen.forgive(nap)

    # --- looking --------------------------------------------------------------------------------------------------

    def is_complete(self, now: float) -> bool:
        """Has everyone who is there been heard, and said who it is? True too if that takes too long."""
        ends = max((seen.ends for seen in self._labels.values()), default=0)
        listened = now - self._since
        wait = 2 * max(ABOUT_S, pace(ends), 2 * self._timings.heartbeat) + COMPLETE_S
        if listened < wait:
            return False
        return listened >= 2 * wait or all(seen.is_complete(now) for seen in self._labels.values())

    def snapshot(self, now: float) -> dict[str, Any]:
        """The whole picture, as plain data: see docs/operations.md."""
        labels = [seen.picture(now) for _, seen in sorted(self._labels.items())]
        return {
            "at": round(self.wall.read(now), 3),
            "bus": self._bus,
            "labels": labels,
            "events": [event.picture() for event in self._happenings.events],
            "switches": [switch.picture() for switch in self._happenings.switches],
            "totals": _totals(labels),
        }

    def history(self) -> dict[str, dict[str, list[list[float]]]]:
        """What charts need of the time before: see docs/operations.md."""
        seen = self._labels.values()
        return {
            "receivers": {hex_id(end.id): list(map(list, end.history)) for one in seen for end in one.receivers()},
            "senders": {hex_id(end.id): list(map(list, end.history)) for one in seen for end in one.senders.values()},
        }

    def check_invariants(self) -> None:
        assert len(self._labels) <= limits.OBSERVED_LABELS_MAX
        assert sum(map(len, self._by_tag.values())) == len(self._labels)
        assert len(self._happenings.events) <= limits.EVENTS_MAX
        for seen in self._labels.values():
            seen.check_invariants()


def _totals(labels: list[dict[str, Any]]) -> dict[str, Any]:
    groups = [group for label in labels for group in label["groups"]]
    receivers = [receiver for group in groups for receiver in group["receivers"]]
    senders = [sender for label in labels for sender in label["senders"]]
    totals: dict[str, Any] = {
        "labels": len(labels),
        "groups": len(groups),
        "receivers": len(receivers),
        "senders": len(senders),
        "rate_in": round(sum(sender["rate"] for sender in senders), 1),
        "rate_out": round(sum(receiver["rate"] for receiver in receivers), 1),
    }
    totals |= {name: sum(sender[name] for sender in senders) for name in ("inserted", "sent", "undone")}
    told = ("emitted", "acked", "retried", "dead", "expired", "handed_over", "lost", "repaired")
    return totals | {name: sum(receiver[name] for receiver in receivers) for name in told}
