"""What a stranger can do to each machine by saying what he likes: nothing is raised, nothing grows without a bound, and
no frame of his takes many steps.

Steps are calls of functions, counted: a busy machine changes nothing about them.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from random import Random
from types import FrameType as PythonFrame
from typing import Any

import pytest
from sortedcontainers import SortedDict

from rvq.core.asker import AskerMachine, Wish
from rvq.core.machine import Machine
from rvq.core.observer import ObserverMachine
from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import RecorderMachine
from rvq.core.sealing import SealingMachine
from rvq.core.sender import SenderMachine
from rvq.core.tap import TapMachine
from rvq.sim.floods import Floods
from rvq.timings import Timings
from rvq.wire.frames import OrderKind
from rvq.wire.keys import Key, Keys

T = Timings()
LABEL = "work"
FRAMES = 4_000
"""Of all kinds together, to each machine."""
MADE = 500
"""Of each kind; they come again and again, as one who floods would."""
SOURCES = 300
"""Addresses that he has."""
PACE_S = 1 / 50_000
STEPS_MAX = 100_000
"""Calls for one frame and the wake-up after it, at most: the largest table has 4,000 members, each read in a dozen."""
STEPS_MEAN = 250.0
"""Over all frames: most of them must be turned away at the door."""
STEPS_MEAN_OF = {"observer": 1500.0}
"""One who looks on has no door: nobody waits for him."""
LONGEST = 65_536
"""No list, map or queue of any machine is longer: the largest bound of `rvq.limits` that counts things."""


class Room:
    """A sender with two receivers who are at work, and the machine that is flooded beside them."""

    def __init__(self, name: str) -> None:
        self.now = 0.0
        self.sender = SenderMachine(LABEL, 0xA, timings=T, random=Random(1), now=0.0, wall_offset=1.7e9)
        self.receiver = self._receiving(ReceiverMachine, 5, group="default")
        self.other = self._receiving(ReceiverMachine, 6, group="default")
        self.recorder = self._receiving(RecorderMachine, 7)
        self.tap = TapMachine(LABEL, 8, timings=T, random=Random(8), now=0.0)
        self.observer = ObserverMachine(timings=T, now=0.0, wall_offset=1.7e9)
        wish = Wish(OrderKind.PAUSE, "nobody")
        self.asker = AskerMachine(LABEL, 9, wish, nonce=1, by="me", timings=T, now=0.0)
        inside = self._receiving(ReceiverMachine, 10, group="other")
        told = {"stats": inside.stats, "events": inside.events}
        self.sealing = SealingMachine(inside, Keys([Key(bytes(32))]), bus=b"b", random=Random(3), now=0.0, **told)
        self.flooded: Machine = getattr(self, name)
        self.ends: list[Any] = [self.sender, self.receiver, self.other, self.recorder, self.tap, self.observer]
        if self.flooded not in self.ends:
            self.ends.append(self.flooded)
        self.floods = Floods(LABEL, Random(2))

    def _receiving(self, kind: type[Any], id: int, **options: Any) -> Any:
        return kind(LABEL, id, weight=1, timings=T, random=Random(id), now=0.0, wall_offset=1.7e9, **options)

    def run(self, until: float) -> None:
        """They talk to each other, and he listens."""
        while self.now < until:
            self.now += 0.01
            for place, end in enumerate(self.ends):
                if end.next_deadline() <= self.now:
                    end.wake(self.now)
                for target, datagram in end.take_outgoing():
                    if end is not self.sealing:
                        self.floods.hear(datagram, place)
                        self._pass(place, target, datagram)

    def _pass(self, source: int, target: object, datagram: bytes) -> None:
        for place, end in enumerate(self.ends):
            if place != source and (target == place or not isinstance(target, int)):
                end.receive(self.now, datagram, source)

    def at_work(self) -> int:
        """How many messages were handled since this was asked for last."""
        for number in range(20):
            self.sender.submit(self.now, number)
        self.sender.flush(self.now)
        self.run(self.now + 0.05)
        handled = 0
        for receiver in (self.receiver, self.other):
            taken = receiver.take(self.now, 100)
            receiver.acknowledge_all(self.now, taken)
            handled += len(taken)
        recorded = self.recorder.take(self.now, 100)
        self.recorder.stored(self.now, recorded)
        self.tap.take(self.now, 10_000)
        self.recorder.history()
        return handled


class Steps:
    """Counts calls of functions."""

    def __init__(self) -> None:
        self.count = self.total = self.worst = 0

    def _note(self, frame: PythonFrame, event: str, arg: object) -> None:
        if event == "call" or event == "c_call":
            self.count += 1

    def __enter__(self) -> Steps:
        self.count = 0
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        self.total += self.count
        self.worst = max(self.worst, self.count)


def parts(thing: object, seen: set[int]) -> Iterator[object]:
    """All that a machine is made of."""
    waiting = [thing]
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, (str, bytes, int, float, type, type(None))):
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, (dict, SortedDict)):
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset, deque)):
            waiting += list(one)
        elif is_dataclass(one):
            waiting += [getattr(one, field.name, None) for field in fields(one)]
        elif type(one).__module__.startswith("rvq."):
            names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
            waiting += [getattr(one, name, None) for name in names] + list(getattr(one, "__dict__", {}).values())


def longest(machine: object) -> int:
    containers = (dict, SortedDict, list, tuple, set, frozenset, deque)
    return max(len(one) for one in parts(machine, set()) if isinstance(one, containers))


@pytest.mark.parametrize("name", ["sender", "receiver", "recorder", "tap", "observer", "asker", "sealing"])
def test_whatever_a_stranger_says_nothing_is_raised_nothing_grows_and_nothing_takes_long(name: str) -> None:
    room = Room(name)
    room.run(2.0)
    assert room.at_work() > 0
    random, steps, machine = Random(name), Steps(), room.flooded
    made = [make() for make in room.floods.kinds.values() for _ in range(MADE // 10)]
    for number in range(FRAMES):
        if number % 500 == 0:
            room.at_work()
            made[:100] = [room.floods.any() for _ in range(100)]
            random.shuffle(made)
        _, datagram = random.choice(made)
        room.now += PACE_S
        with steps:
            machine.receive(room.now, datagram, ("10.0.0.66", random.randrange(SOURCES)))
            if machine.next_deadline() <= room.now:
                machine.wake(room.now)
        if number % 100 == 0:
            machine.take_outgoing()
    machine.check_invariants()
    assert longest(machine) <= LONGEST
    assert steps.worst <= STEPS_MAX
    assert steps.total / FRAMES <= STEPS_MEAN_OF.get(name, STEPS_MEAN)
