"""One sender or receiver as an observer knows it. Owns its counters, rates and history; judges nothing."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from rvq import limits
from rvq.core.machine import Address
from rvq.core.observed.happenings import hex_id
from rvq.core.stats import COUNTERS
from rvq.wire.frames import NO_VERSION, About, Alive, SenderAlive, Version

SHARE_S = 10.0
"""Over so long a receiver's share is reckoned: long enough that batches do not show."""
RATE_S_MIN = 0.2
"""Introductions that are nearer than this make no rate: a few messages would look like thousands."""
BEATS_MAX = 32
"""Heartbeats of one receiver whose time is remembered: several seconds."""

Point = tuple[float, float, float, int]


def printable(text: str) -> str:
    """Of a text that anyone may have sent, what does no harm to a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def spell(address: Address) -> str:
    """An address for people. One of IPv6 is a tuple of four, of which the last is the index of the interface."""
    match address:
        case (str(host), port):
            return f"{host}:{port}"
        case (str(host), port, _, index):
            return f"[{host}{f'%{index}' if index else ''}]:{port}"
    return str(address)


class Seen:
    """What senders and receivers have in common."""

    counted = "acked"
    """The counter whose growth is the rate."""

    def __init__(self, id: int, label: str, now: float) -> None:
        self.id = id
        self.label = label
        self.address: Address = None
        self.heard_at = now
        self.about: About | None = None
        self.about_at = -math.inf
        self.silent_told = False
        """It was said that it is silent."""
        self.history: deque[Point] = deque(maxlen=limits.HISTORY_POINTS_MAX)
        self._counts: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        self._rate = 0.0
        self._rated: deque[tuple[float, int]] = deque(maxlen=limits.HISTORY_POINTS_MAX)
        """When the counter was told, and how far it was."""

    def count(self, name: str) -> int:
        return self._counts[name]

    def introduce(self, now: float, wall: float, frame: About, address: Address) -> dict[str, int]:
        """It said who it is. By how much each counter has grown since the last time; not since before that."""
        before, first = self._counts, self.about is None
        # One that knows more counters has them at the end; one that knows fewer has not counted the others.
        self._counts = {**before, **dict(zip(COUNTERS, frame.counters, strict=False))}
        self.about, self.about_at, self.address = frame, now, address
        self.heard_at = max(self.heard_at, now)
        self._note_rate(now)
        grown = {name: 0 if first else max(0, self._counts[name] - before[name]) for name in COUNTERS}
        self.history.append((round(wall, 3), round(self._rate, 1), self._second(frame), grown["repaired"]))
        return grown

    def _note_rate(self, now: float) -> None:
        count = self.count(self.counted)
        if not self._rated:
            self._rated.append((now, count))
            return
        before_at, before = self._rated[-1]
        if now - before_at >= RATE_S_MIN:
            self._rate = max(0.0, (count - before) / (now - before_at))
            self._rated.append((now, count))

    def _second(self, frame: About) -> float:
        raise NotImplementedError

    def rate(self, now: float) -> float:
        """Per second, between its last two introductions; 0 if the last one is long ago."""
        return self._rate if now - self.about_at < SHARE_S else 0.0

    def done_lately(self, now: float) -> int:
        """By how much its counter grew in the last seconds."""
        since = now - SHARE_S
        then = next((count for at, count in self._rated if at >= since), None)
        return 0 if then is None else max(0, self.count(self.counted) - then)

    def forgive(self, nap: float) -> None:
        """The observer slept: nobody was silent in that time."""
        self.heard_at += nap

    def picture(self, now: float) -> dict[str, Any]:
        about, address = self.about, self.address
        return {
            "id": hex_id(self.id),
            "host": printable(about.host) if about else None,
            "pid": about.pid if about else None,
            "address": None if address is None else spell(address),
            "started_at": round(about.started_at, 3) if about else None,
            "rate": round(self.rate(now), 1),
            "heard_age": round(max(0.0, now - self.heard_at), 3),
        }


class SeenReceiver(Seen):
    """A receiver or recorder."""

    def __init__(self, id: int, label: str, group: str, now: float) -> None:
        super().__init__(id, label, now)
        self.group = group
        self.version: Version = NO_VERSION
        """The newest table that it says it belongs to."""
        self.weight = 1
        self.leaving = False
        self.recorder = False
        self.was_in = False
        self.load = 0
        self._counter = 0
        self._beats: deque[tuple[int, float]] = deque(maxlen=BEATS_MAX)
        self._leases: dict[int, float] = {}
        """By stream: when it sent the newest heartbeat that was echoed, about."""

    def introduce(self, now: float, wall: float, frame: About, address: Address) -> dict[str, int]:
        grown = super().introduce(now, wall, frame, address)
        self.version = max(self.version, frame.version)
        self.weight, self.recorder, self.load = frame.weight or 1, frame.recorder, frame.backlog
        return grown

    def beat(self, now: float, frame: Alive, address: Address) -> bool:
        """Its heartbeat. False if it is an old one."""
        if frame.counter <= self._counter:
            return False
        self._counter = frame.counter
        self._beats.append((frame.counter, now))
        self.heard_at, self.address = now, address
        self.version, self.weight, self.leaving = frame.version, frame.weight, frame.leaving
        self.recorder, self.load = frame.recorder, frame.load
        return True

    def echoed(self, stream: int, counter: int) -> None:
        """A sender says that this is the newest heartbeat that it has heard."""
        for known, at in self._beats:
            if known == counter:
                self._leases[stream] = max(at, self._leases.get(stream, at))
                if len(self._leases) > limits.STREAMS_MAX:
                    del self._leases[next(iter(self._leases))]
                return

    def forget_stream(self, stream: int) -> None:
        self._leases.pop(stream, None)

    def lease_age(self, now: float) -> float | None:
        """Of the oldest of its leases. None without a sender."""
        return now - min(self._leases.values()) if self._leases else None

    def _second(self, frame: About) -> float:
        return round(frame.lag, 4)

    def picture(self, now: float) -> dict[str, Any]:
        """All but what only its group knows."""
        age = self.lease_age(now)
        names = ("emitted", "acked", "retried", "dead", "expired", "handed_over", "lost", "repaired", "duplicates")
        return {
            **super().picture(now),
            **{name: self.count(name) for name in (*names, "bad_frames")},
            "weight": self.weight,
            "backlog": self.load,
            "lag": round(self.about.lag, 4) if self.about else None,
            "lease_age": None if age is None else round(max(0.0, age), 3),
            "recorder": self.recorder,
        }


class SeenSender(Seen):
    """A sender."""

    counted = "routed"

    def __init__(self, id: int, label: str, now: float) -> None:
        super().__init__(id, label, now)
        self.alive: SenderAlive | None = None
        self.stamp_told = 0
        self.versions_told: dict[str, Version] | None = None
        """The tables in force when a switch was last told of."""
        self.owners: dict[tuple[int, int], int] = {}
        """Lanes by stamp and slot: who reported on each last."""

    def beat(self, now: float, frame: SenderAlive, address: Address) -> bool:
        """Its heartbeat, of which there may be several frames. False if it is an old one."""
        if self.alive is not None and frame.counter < self.alive.counter:
            return False
        if self.alive is not None and frame.oldest_stamp > self.alive.oldest_stamp:
            self.owners = {key: owner for key, owner in self.owners.items() if key[0] >= frame.oldest_stamp}
        self.alive, self.heard_at, self.address = frame, now, address
        return True

    @property
    def versions(self) -> dict[str, Version]:
        """The table in force of each group."""
        return {state.group: state.version for state in self.alive.groups} if self.alive else {}

    @property
    def undone(self) -> int:
        return self.about.backlog if self.about else 0

    def _second(self, frame: About) -> float:
        return float(frame.backlog)

    def state(self) -> str:
        """As long as it is heard."""
        groups = self.alive.groups if self.alive else ()
        if self.undone and (not groups or any(state.held for state in groups)):
            return "waiting"
        return "sending" if self.undone or self._rate else "idle"

    def picture(self, now: float) -> dict[str, Any]:
        """All but its state."""
        about = self.about
        return {
            **super().picture(now),
            "inserted": self.count("inserted"),
            "sent": self.count("routed"),
            "acked": self.count("acked"),
            "lost": self.count("lost"),
            "repaired": self.count("repaired"),
            "bad_frames": self.count("bad_frames"),
            "undone": self.undone,
            "window_used": about.window_used if about else 0,
            "window": about.window if about else None,
            "stamp": about.stamp if about else (self.alive.newest_stamp if self.alive else 0),
            "stamp_at": about.stamp_at if about else None,
        }
