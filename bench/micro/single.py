"""What one message costs that is sent and handled alone: the machines of a sender and of three receivers, no sockets.

Owns bringing them together in virtual time, and frames in store, so that each step can be taken by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from timeit import timeit

from bench.figures import Figure
from bench.group.fleet import Trouble
from rvq.core.machine import Machine, Route
from rvq.core.receiver import ReceiverMachine
from rvq.core.sender import SenderMachine
from rvq.timings import Timings
from rvq.wire.records import make_record

RECEIVERS = 3
BODY = bytes(100)
GAP_S = 0.0002
"""Between messages: 5,000 per second."""
TICK_S, GATHERED_S_MAX = 0.001, 5.0
AT_ONCE = 64
"""Messages that `async for` takes at once."""
CALLS, ROUNDS = 300, 10
"""With a line of its own for each round: nobody reports what was sent, so its window takes about 1,000 messages."""


class Line:
    """A sender whose receivers are there. `hear` hands what `send` made to one of them."""

    def __init__(self) -> None:
        timings, self.now = Timings(), 0.0
        self.sender = SenderMachine("work", 1, timings=timings, random=Random(1), now=0.0, wall_offset=0.0)
        self.receivers = [
            ReceiverMachine("work", id, group="default", weight=1, timings=timings, random=Random(id), now=0.0)
            for id in range(2, 2 + RECEIVERS)
        ]
        self.frames: deque[bytes] = deque()
        self._gather()

    def _gather(self) -> None:
        ends: dict[int, Machine] = dict(enumerate([self.sender, *self.receivers]))
        for tick in count():
            self.now = tick * TICK_S
            for end in ends.values():
                if end.next_deadline() <= self.now:
                    end.wake(self.now)
            said = [(who, *datagram) for who, end in ends.items() for datagram in end.take_outgoing()]
            for who, target, datagram in said:
                for other, end in ends.items():
                    if target == other or (type(target) is Route and target is not Route.ABOUT and other != who):
                        end.receive(self.now, datagram, who)
            tables = self.sender.tables.values()
            if not said and self.now > 2 * Timings().lease and sum(len(table.members) for table in tables) == RECEIVERS:
                return
            if self.now > GATHERED_S_MAX:
                raise Trouble("the receivers did not gather")

    def send(self) -> None:
        """As `await sender.send(body)`, without asyncio."""
        sender, self.now = self.sender, self.now + GAP_S
        sender.submit_record(make_record(BODY))
        sender.flush(self.now)
        self.frames += [datagram for target, datagram in sender.take_outgoing() if target is Route.DATA]
        sender.next_deadline()

    def store(self, messages: int) -> Line:
        for _ in range(messages):
            self.send()
        return self

    def hear(self) -> None:
        """One message for each receiver, all heard by the first, which handles its own."""
        receiver = self.receivers[0]
        for _ in range(RECEIVERS):
            self.now += GAP_S
            receiver.receive(self.now, self.frames.popleft(), 0)
            receiver.take_outgoing()
            receiver.next_deadline()
            if receiver.ready:
                receiver.acknowledge_all(self.now, receiver.take(self.now, AT_ONCE))
                receiver.take_outgoing()
                receiver.next_deadline()


def run(quick: bool) -> Iterator[Figure]:
    rounds = 1 if quick else ROUNDS
    sent = min(_us_per_call(Line().send) for _ in range(rounds))
    yield Figure("a message alone: sent", sent, "us")
    heard = min(_us_per_call(Line().store(RECEIVERS * CALLS).hear) for _ in range(rounds))
    yield Figure(f"a message alone: at one of {RECEIVERS} receivers, which handles each third", heard / RECEIVERS, "us")


def _us_per_call(step: Callable[[], object]) -> float:
    return timeit(step, number=CALLS) / CALLS * 1e6
