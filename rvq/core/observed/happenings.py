"""What happened, as lines with a time: events, and which tables groups had. Owns how many of each are kept."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from rvq import limits

SAME_S = 5.0
"""Losses of one receiver within this time are one event."""


def hex_id(id: int) -> str:
    """As logs and pictures have it."""
    return f"{id:016x}"


def short(id: int) -> str:
    """As people read it."""
    return f"{id:016x}"[:4] + "…"


@dataclass(slots=True)
class Event:
    """Something that happened. `at` is by the observer's wall clock."""

    at: float
    label: str
    group: str
    who: int
    kind: str
    text: str
    count: int = 0

    def picture(self) -> dict[str, Any]:
        return {
            "at": round(self.at, 3),
            "label": self.label,
            "group": self.group or None,
            "who": hex_id(self.who) if self.who else None,
            "kind": self.kind,
            "text": self.text,
        }


@dataclass(slots=True)
class Switch:
    """A table of a group, when it was first heard of. Whose a slot is may be learned later: 0 until then."""

    at: float
    label: str
    group: str
    version: tuple[int, int]
    slots: tuple[int, ...] = ()

    @property
    def known(self) -> bool:
        return bool(self.slots) and 0 not in self.slots

    def picture(self) -> dict[str, Any]:
        return {
            "at": round(self.at, 3),
            "label": self.label,
            "group": self.group,
            "version": [self.version[0], hex_id(self.version[1])],
            "slots": [hex_id(owner) if owner else None for owner in self.slots],
        }


class Happenings:
    """The last of each."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque(maxlen=limits.EVENTS_MAX)
        self.switches: deque[Switch] = deque(maxlen=limits.EVENTS_MAX)
        self.count = 0
        """Of events since the start, so that whoever looks sees that there are new ones."""

    def tell(self, at: float, label: str, group: str, who: int, kind: str, text: str) -> None:
        self.count += 1
        self.events.append(Event(at, label, group, who, kind, text))

    def tell_loss(self, at: float, label: str, group: str, who: int, frames: int) -> None:
        """A receiver had to ask for so many frames. What belongs together is one event, which grows."""
        for event in reversed(self.events):
            if event.at < at - SAME_S:
                break
            if event.kind == "loss" and event.who == who:
                event.count += frames
                event.text = _loss_text(who, event.count, at - event.at)
                return
        self.tell(at, label, group, who, "loss", _loss_text(who, frames, 0.0))
        self.events[-1].count = frames

    def switch(self, at: float, label: str, group: str, version: tuple[int, int]) -> Switch:
        """A group has a new table."""
        switch = Switch(at, label, group, version)
        self.switches.append(switch)
        return switch


def _loss_text(who: int, frames: int, seconds: float) -> str:
    during = f" in {seconds:.0f} s" if seconds >= 1.0 else ""
    return f"{short(who)} asked for {frames} frame{'s' * (frames != 1)} that it missed{during}"
