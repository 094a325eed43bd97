"""Processes: what a driver does for a machine, and what befalls it. The machines here do as little as they can."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from rvq.core.machine import Datagram, Route, Wall
from rvq.core.stats import Stats
from rvq.sim.clock import Clock, LocalClock
from rvq.sim.history import Broken, Done, Ended, Failed, Finished, History, Started, Submitted
from rvq.sim.network import Link, Network
from rvq.sim.process import WAKES_PER_S_MAX, Job, ReceiverProcess, SenderProcess, State, Surroundings
from rvq.sim.story import Story


@dataclass
class Letter:
    """A message, as much as a process looks at it."""

    sequence: int
    sender: int = 7
    group: str = "default"
    key: str | None = None
    body: Any = "x"
    lane_asked_at: float | None = None
    attempt: int = 1
    due_at: float | None = None
    expires_at: float | None = None


@dataclass
class FakeMachine:
    """Notes what it is asked for. `deadline`, `outgoing` and what it raises are set by the test."""

    deadline: float = math.inf
    outgoing: list[Datagram] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    error: Exception | None = None
    invariant: bool = True
    events: list[str] = field(default_factory=list)
    stats: Stats = field(default_factory=Stats)

    def receive(self, now: float, datagram: bytes, source: Any, size: int = 0) -> None:
        self.calls.append(("receive", now, datagram, source))
        if self.error:
            raise self.error

    def wake(self, now: float) -> None:
        self.calls.append(("wake", now))
        self.deadline = math.inf

    def next_deadline(self) -> float:
        return self.deadline

    def take_outgoing(self) -> list[Datagram]:
        outgoing, self.outgoing = self.outgoing, []
        return outgoing

    def check_invariants(self) -> None:
        assert self.invariant, "two and two is five"


@dataclass
class FakeReceiver(FakeMachine):
    line: list[Letter] = field(default_factory=list)
    left: bool = False
    leaving: bool = False
    wall: Wall = field(default_factory=lambda: Wall(0.0))

    @property
    def ready(self) -> bool:
        return bool(self.line)

    def take(self, now: float, max: int) -> list[Letter]:
        taken, self.line = self.line[:max], self.line[max:]
        return taken

    def acknowledge(self, now: float, message: Letter) -> None:
        self.calls.append(("acknowledge", message.sequence))

    def retry(self, now: float, message: Letter, delay: float = 0.0) -> None:
        self.calls.append(("retry", message.sequence, delay))

    def leave(self, now: float) -> None:
        self.left = True

    def may_start(self, now: float, stream: int, sequence: int) -> bool:
        return False


@dataclass
class FakeSender(FakeMachine):
    room: int = 1000
    bodies: list[Any] = field(default_factory=list)
    done: bool = False
    closed: bool = False
    waiting_for: str | None = None

    @property
    def has_room(self) -> bool:
        return len(self.bodies) < self.room

    @property
    def all_done(self) -> bool:
        return not self.undone

    @property
    def undone(self) -> int:
        return 0 if self.done else len(self.bodies)

    def submit(self, now: float, body: Any, **_attributes: Any) -> None:
        self.bodies.append(body)

    def flush(self, now: float) -> None:
        self.calls.append(("flush",))

    def close(self, now: float) -> None:
        self.closed = True

    def is_done(self, group: str, sequence: int) -> bool:
        return self.done


class Home:
    """A clock, a network and a history for processes; `probe` is an endpoint to talk to them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.history = History()
        self.network = Network(self.clock, Random(1), Link(delay=0.01, jitter=0.0))
        self.around = Surroundings(self.clock, self.network, self.history, Story(self.clock), Random(2))
        self.probe = self.network.attach("probe", "work", hears_data=True, notify=lambda: None)

    def receiver(self, machine: FakeReceiver | None = None, *, rate: float = 1.0, **options: Any) -> ReceiverProcess:
        options = {"handler": lambda _message: None, "group": "default", **options}
        handler = options.pop("handler")
        local = LocalClock(100.0, rate)
        return ReceiverProcess(self.around, "r", 5, "work", local, machine or FakeReceiver(), handler, **options)

    def sender(self, jobs: list[Job], machine: FakeSender | None = None, **options: Any) -> SenderProcess:
        return SenderProcess(self.around, "s", 7, "work", LocalClock(), machine or FakeSender(), iter(jobs), **options)

    def say(self, *datagrams: bytes, to: str = "r") -> None:
        self.network.send("probe", [(to, datagram) for datagram in datagrams])

    def kinds(self) -> list[type]:
        return [type(event) for event in self.history]


@pytest.fixture
def home() -> Home:
    return Home()


def called(process: Any, what: str) -> list[tuple[Any, ...]]:
    return [call for call in process.machine.calls if call[0] == what]


# --- driving ------------------------------------------------------------------------------------------------------


def test_a_machine_sees_its_own_clock_and_who_sent(home: Home) -> None:
    process = home.receiver(rate=1.02)
    home.say(b"hello")
    home.clock.run(1.0)
    [(_, now, datagram, source)] = called(process, "receive")
    assert now == pytest.approx(100.0 + 1.02 * 0.01)
    assert (datagram, source) == (b"hello", "probe")


def test_it_is_woken_when_its_own_clock_says_so_and_a_little_late(home: Home) -> None:
    process = home.receiver(FakeReceiver(deadline=102.0), rate=1.04)
    home.clock.run(10.0)
    [(_, now)] = called(process, "wake")
    assert 102.0 <= now <= 102.0 + 0.002


def test_what_a_machine_has_to_say_is_sent_after_each_step(home: Home) -> None:
    home.receiver(FakeReceiver(outgoing=[(Route.DATA, b"\0" * 20)]))
    home.clock.run(1.0)
    assert [datagram for _, datagram, _ in home.probe.read()] == [b"\0" * 20]


def test_a_machine_that_raises_is_a_violation_and_its_process_is_over(home: Home) -> None:
    process = home.receiver(FakeReceiver(error=ZeroDivisionError("oh")))
    home.say(b"x")
    home.clock.run(1.0)
    assert process.state is State.CRASHED
    [broken] = [event for event in home.history if isinstance(event, Broken)]
    assert "ZeroDivisionError: oh" in broken.error and broken.process == "r"


def test_a_machine_whose_invariants_fail_is_a_violation(home: Home) -> None:
    process = home.receiver()
    process.check()
    assert not home.kinds()
    process.machine.invariant = False
    process.check()
    assert home.kinds() == [Broken, Ended]


def test_a_machine_that_is_woken_without_end_is_a_violation(home: Home) -> None:
    class Restless(FakeReceiver):
        def wake(self, now: float) -> None:
            self.calls.append(("wake", now))

    process = home.receiver(Restless(deadline=0.0))
    home.clock.run(1.0)
    process.check_wakes(1.0)
    assert len(called(process, "wake")) > WAKES_PER_S_MAX
    assert home.kinds() == [Broken, Ended]


# --- what befalls a process ---------------------------------------------------------------------------------------


def test_a_paused_process_does_nothing_and_makes_up_for_it(home: Home) -> None:
    process = home.receiver(FakeReceiver(deadline=101.0))
    process.pause()
    home.say(b"x")
    home.clock.run(5.0)
    assert not process.machine.calls and process.alive
    process.resume()
    assert sorted(call[0] for call in process.machine.calls) == ["receive", "wake"]
    assert all(call[1] == pytest.approx(105.0) for call in process.machine.calls), "its clock went on"


def test_work_that_ends_while_paused_is_finished_afterwards(home: Home) -> None:
    process = home.receiver(FakeReceiver(line=[Letter(1)]), handler=lambda _message: 1.0)
    process.pause()
    home.clock.run(5.0)
    assert Finished not in home.kinds()
    process.resume()
    assert [event.at for event in home.history if isinstance(event, Finished)] == [5.0]


def test_a_crashed_process_says_not_one_more_word(home: Home) -> None:
    process = home.receiver(FakeReceiver(line=[Letter(1)]), handler=lambda _message: 1.0)
    process.crash()
    process.machine.outgoing = [(Route.CONTROL, b"\0" * 20)]
    home.say(b"x")
    home.clock.run(5.0)
    assert not home.probe.read() and not called(process, "receive")
    assert home.kinds() == [Started, Ended]
    process.crash()
    process.resume()
    assert process.state is State.CRASHED and home.kinds() == [Started, Ended]


def test_what_does_not_fit_the_buffer_of_a_paused_process_is_lost(home: Home) -> None:
    process = home.receiver(buffer_bytes=2000)
    process.pause()
    home.say(*[b"x" * 400] * 5)
    home.clock.run(1.0)
    assert process.overflowed == 3
    process.resume()
    assert len(called(process, "receive")) == 2


# --- handling -----------------------------------------------------------------------------------------------------


def test_messages_are_handled_one_at_a_time_unless_asked_otherwise(home: Home) -> None:
    line = [Letter(n) for n in range(1, 6)]
    process = home.receiver(FakeReceiver(line=line), handler=lambda _message: 1.0, concurrency=2)
    assert process.handling == 2
    home.clock.run(1.5)
    started = [(event.at, event.sequence) for event in home.history if isinstance(event, Started)]
    assert started == [(0.0, 1), (0.0, 2), (1.0, 3), (1.0, 4)]


def test_a_handler_that_raises_is_a_failure_and_the_message_is_tried_again(home: Home) -> None:
    def fail(_message: Letter) -> float:
        raise ValueError("no")

    process = home.receiver(FakeReceiver(line=[Letter(1)]), handler=fail, retry_s=0.3)
    assert home.kinds() == [Started, Failed]
    assert called(process, "retry") == [("retry", 1, 0.3)] and not called(process, "acknowledge")


def test_a_start_tells_when_the_lane_was_asked_for_in_true_time_and_who_else_could(home: Home) -> None:
    letter = Letter(1, lane_asked_at=104.0)
    home.clock.run(5.0)
    home.receiver(FakeReceiver(line=[letter]), rate=1.0, rivals=lambda _process, _stream, _sequence: ("other",))
    [start] = [event for event in home.history if isinstance(event, Started)]
    assert start.asked_at == pytest.approx(4.0) and start.rivals == ("other",)


def test_one_that_leaves_ends_when_its_machine_has_left(home: Home) -> None:
    process = home.receiver()
    process.leave()
    assert process.state is State.ENDED
    assert [event.crashed for event in home.history if isinstance(event, Ended)] == [False]


# --- sending ------------------------------------------------------------------------------------------------------


def test_jobs_are_submitted_one_after_another_with_their_pauses(home: Home) -> None:
    home.sender([Job("a"), Job("b"), Job("c", "key", after_s=2.0)])
    home.clock.run(5.0)
    submitted = [event for event in home.history if isinstance(event, Submitted)]
    assert [(event.at, event.sequence, event.key, event.body) for event in submitted] == [
        (0.0, 1, None, "a"),
        (0.0, 2, None, "b"),
        (2.0, 3, "key", "c"),
    ]


def test_a_sender_without_room_waits_and_does_not_lose_its_place(home: Home) -> None:
    machine = FakeSender(room=1)
    process = home.sender([Job("a"), Job("b")], machine)
    assert machine.bodies == ["a"] and not process.all_submitted
    machine.room = 5
    home.say(b"x", to="s")
    home.clock.run(1.0)
    assert machine.bodies == ["a", "b"] and process.all_submitted


def test_done_is_recorded_once_the_machine_says_so_of_what_was_handled(home: Home) -> None:
    machine = FakeSender()
    home.sender([Job("a")], machine)
    home.history.add(Finished(0.5, "r", "default", 7, 1))
    home.say(b"x", to="s")
    home.clock.run(1.0)
    assert Done not in home.kinds()
    machine.done = True
    home.say(b"x", to="s")
    home.clock.run(2.0)
    assert home.kinds().count(Done) == 1


def test_a_sender_that_is_to_close_does_so_when_everything_is_done(home: Home) -> None:
    machine = FakeSender()
    process = home.sender([Job("a")], machine, close_when_done=True)
    assert process.alive and not process.finished
    machine.done = True
    home.say(b"x", to="s")
    home.clock.run(1.0)
    assert machine.closed and process.state is State.ENDED and process.finished


def test_a_new_sender_gets_the_jobs_that_were_not_submitted(home: Home) -> None:
    process = home.sender([Job("a"), Job("b", after_s=1.0), Job("c", after_s=1.0)])
    process.crash()
    assert [job.body for job in process.jobs_left()] == ["b", "c"]
