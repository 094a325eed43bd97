"""Processes of a world. Owns what a driver does for one machine: datagrams in and out, one timer, and the work.

A process can be paused (SIGSTOP: its clock goes on, its timers fire late, its buffer fills), crash (kill -9: not one
more datagram) or end in good order. It has its own clock, and never sees the true time.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from random import Random
from typing import Any

from rvq.core.asker import AskerMachine
from rvq.core.machine import Machine, Route, Target
from rvq.core.observer import ObserverMachine
from rvq.errors import WireError
from rvq.sim.clock import Clock, LocalClock
from rvq.sim.fanned import Fanned, FannedBus
from rvq.sim.history import (
    Broken,
    Dead,
    Done,
    Ended,
    Failed,
    Finished,
    GivenUp,
    History,
    Owed,
    Seen,
    Started,
    Submitted,
)
from rvq.sim.machines import ReceivingEnd, RecordingEnd, SendingEnd, StartedMessage, TappingEnd
from rvq.sim.network import BUFFER_BYTES, KIND, Network
from rvq.sim.sealed import Guarded, SealedBus
from rvq.sim.story import Story
from rvq.wire.codec import decode_control
from rvq.wire.frames import FrameType, Stamp

TIMER_LATE_S = (0.00001, 0.001)
"""How late a timer fires in a process that runs."""

WAKES_PER_S_MAX = 1000
"""A machine that wants to be woken more often than this is going round in circles."""

LOOKS_MAX = 100
"""Messages that a tap takes at once."""

Handler = Callable[[Any], float | None]
"""Handles one message. May raise: the message is tried again. May return how long it takes, in virtual seconds."""


class KillsProcess(Exception):
    """Raised by a handler that takes its process down with it."""


class State(Enum):
    """Where a process is in its life."""

    RUNNING = "running"
    PAUSED = "paused"
    CRASHED = "crashed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all processes of a world share."""

    clock: Clock
    network: Network
    history: History
    story: Story
    random: Random
    bus: SealedBus | None = None
    """None: frames are plain."""
    fan: FannedBus | None = None
    """None: there is multicast."""


class Process:
    """One machine and its driver. `id` is the machine's; `name` its address."""

    machine: SendingEnd | ReceivingEnd | TappingEnd | RecordingEnd | ObserverMachine | AskerMachine
    guarded: Guarded | None = None
    """The machine behind its seal, if the bus is sealed."""
    fanned: Fanned | None = None
    """The machine with what sends to each, if there is no multicast."""

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        label: str,
        local: LocalClock,
        *,
        hears_data: bool,
        buffer_bytes: int = BUFFER_BYTES,
        luck: Random | None = None,
    ) -> None:
        self.name = name
        self.id = id
        self.label = label
        self.local = local
        self.state = State.RUNNING
        self._around = around
        self._clock = around.clock
        self._armed_at = math.inf
        self._deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._wakes = 0
        self._endpoint = around.network.attach(
            name, label, hears_data=hears_data, notify=self._on_datagrams, buffer_bytes=buffer_bytes, luck=luck
        )
        around.story.introduce(id, name)

    def __repr__(self) -> str:
        return f"<{self.name} {self.state.value}>"

    @property
    def local_now(self) -> float:
        """What this process's own clock shows."""
        return self.local.read(self._clock.now)

    @property
    def alive(self) -> bool:
        """Runs, or is only paused."""
        return self.state in (State.RUNNING, State.PAUSED)

    @property
    def overflowed(self) -> int:
        """Datagrams that did not fit the buffer."""
        return self._endpoint.overflowed

    def _put_on_bus(self) -> None:
        """The machine is driven as it is, or behind a seal; without multicast, by what finds the others."""
        machine, now = self.machine, self.local_now
        told = (machine.stats, machine.events)
        self._driven: Machine = machine
        if self._around.fan is not None:
            label = self.label if Route.CONTROL in self._routes else None
            self.fanned = self._around.fan.put_behind(machine, label, self._routes, now, *told)
            self._driven = self.fanned
        if self._around.bus is not None:
            self.guarded = self._around.bus.put_behind(self.name, self._driven, now, *told)
            self._driven = self.guarded

    @property
    def _routes(self) -> tuple[Route, ...]:
        """What it listens to."""
        return (Route.CONTROL, Route.DATA) if self._endpoint.hears_data else (Route.CONTROL,)

    # --- what can befall it ---------------------------------------------------------------------------------------

    def pause(self) -> None:
        """SIGSTOP."""
        if self.state is State.RUNNING:
            self.state = State.PAUSED
            self._tell("PAUSED")

    def resume(self) -> None:
        """SIGCONT. Timer, datagrams and finished work were all waiting: which comes first is a matter of luck."""
        if self.state is not State.PAUSED:
            return
        self.state = State.RUNNING
        self._tell(f"RESUMED with {len(self._endpoint)} datagrams in its buffer")
        deferred, self._deferred = self._deferred, []
        waiting = [*deferred, (self._read, ()), (self._wake, ())]
        self._around.random.shuffle(waiting)
        for step, args in waiting:
            self._do(step, *args)

    def crash(self) -> None:
        """kill -9."""
        if self.alive:
            self._tell("CRASHED")
            self._end(State.CRASHED)

    def _end(self, state: State) -> None:
        self.state = state
        self._deferred.clear()
        self._around.network.detach(self.name)
        self._around.history.add(Ended(self._clock.now, self.name, self._stream, state is State.CRASHED))

    # --- driving the machine --------------------------------------------------------------------------------------

    def check(self) -> None:
        """Prove the machine's invariants again. Called a few times per virtual second."""
        if self.alive:
            try:
                self._driven.check_invariants()
            except Exception as error:
                self._break(error)

    def check_wakes(self, period: float) -> None:
        """A machine whose deadline never moves on would keep a real process at 100 % of a core."""
        wakes, self._wakes = self._wakes, 0
        if wakes > WAKES_PER_S_MAX * period:
            self._break(RuntimeError(f"woken {wakes} times in {period} s: its deadline does not move on"))

    def _do(self, step: Callable[..., None], *args: Any) -> None:
        """One step of the process, and what a driver does after each: work, send, arm the timer."""
        if self.state is State.PAUSED:
            self._deferred.append((step, args))
        elif self.state is State.RUNNING:
            try:
                step(*args)
                self._work()
                self._send()
                self._arm()
            except Exception as error:
                self._break(error)

    def _on_datagrams(self) -> None:
        if self.state is State.RUNNING:
            self._do(self._read)

    def _read(self) -> None:
        now = self.local_now
        receive = self._driven.receive
        for source, datagram, size in self._endpoint.read():
            receive(now, datagram, source, size)

    def _wake(self) -> None:
        self._driven.wake(self.local_now)

    def _send(self) -> None:
        outgoing = self._driven.take_outgoing()
        if outgoing and self.alive:
            for target, datagram in outgoing if self.guarded is None else self.guarded.said:
                self._note_said(target, datagram)
            self._around.network.send(self.name, outgoing)

    def _note_said(self, target: Target, datagram: bytes) -> None:
        if self._around.story.level:
            self._around.story.overhear(self.name, target, datagram)

    def _arm(self) -> None:
        """One timer. A later deadline leaves the armed event as it is: it finds nothing due and arms again."""
        deadline = self._driven.next_deadline()
        if deadline == math.inf or self.state is not State.RUNNING:
            return
        due = max(self.local.true_time(deadline), self._clock.now)
        if due < self._armed_at:
            when = due + self._around.random.uniform(*TIMER_LATE_S)
            self._armed_at = when
            self._clock.at(when, self._on_timer, when)

    def _on_timer(self, armed_at: float) -> None:
        if armed_at != self._armed_at:
            return
        self._armed_at = math.inf
        if self.state is State.RUNNING:
            if self._driven.next_deadline() <= self.local_now:
                self._wakes += 1
                self._do(self._wake)
            else:
                self._arm()

    def _break(self, error: Exception) -> None:
        """The machine raised: that is a violation, and the process is no use any more."""
        text = "".join(traceback.format_exception(error)).rstrip()
        self._around.history.add(Broken(self._clock.now, self.name, text))
        self._tell(f"BROKEN: {error!r}")
        if self.alive:
            self._end(State.CRASHED)

    def _tell(self, text: str) -> None:
        self._around.story.tell(self.name, text)

    # --- what kinds of processes differ in ------------------------------------------------------------------------

    @property
    def _stream(self) -> int | None:
        return None

    def _work(self) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Job:
    """A message to submit, and how long after the one before."""

    body: Any
    key: str | bytes | None = None
    after_s: float = 0.0
    delay: float | None = None
    ttl: float | None = None
    urgent: bool = False


class SenderProcess(Process):
    """A sending end and its workload: jobs are submitted one after another, waiting while the machine has no room."""

    machine: SendingEnd

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        label: str,
        local: LocalClock,
        machine: SendingEnd,
        jobs: Iterator[Job],
        *,
        close_when_done: bool = False,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        super().__init__(around, name, id, label, local, hears_data=False, buffer_bytes=buffer_bytes)
        self.machine = machine
        self._put_on_bus()
        self.submitted = 0
        self.stamps: list[tuple[float, Stamp]] = []
        """Every switch of the stream, and when it was announced."""
        self.close_when_done = close_when_done
        self.jobs = jobs
        self._next: Job | None = None
        self._due = False
        self._owed: dict[str, int] = {}
        """The groups of the newest stamp, and where each begins."""
        self._looked_to: dict[str, int] = {}
        """By journal: up to here everything is known to be done."""
        self._stamps_seen: set[bytes] = set()
        self._waiting_for: str | None = None
        self._tell(f"starts sending to {label!r} (id {id:016x}, clock rate {local.rate:.3f})")
        self._do(self._plan)

    @property
    def all_submitted(self) -> bool:
        return self._next is None

    @property
    def finished(self) -> bool:
        """Everything is submitted and done, or the process is gone."""
        return not self.alive or (self.all_submitted and self.machine.undone == 0)

    @property
    def _stream(self) -> int:
        return self.id

    def jobs_left(self) -> Iterator[Job]:
        """What a sender in this one's place has to submit."""
        return self.jobs if self._next is None else chain([self._next], self.jobs)

    def _plan(self) -> None:
        """Look at the next job; those without a pause before them are submitted at once."""
        self._next = next(self.jobs, None)
        self._due = self._next is not None and self._next.after_s <= 0
        if self._next is not None and not self._due:
            self._clock.after(self._next.after_s, self._do, self._fall_due)

    def _fall_due(self) -> None:
        self._due = True

    def _work(self) -> None:
        machine = self.machine
        now = self.local_now
        submitted = self.submitted
        while self._due and machine.has_room:
            self._submit(now)
            self._plan()
        if self.submitted > submitted:
            machine.flush(now)
        self._record_done()
        self._tell_waiting()
        if self.close_when_done and self.all_submitted and machine.all_done:
            machine.close(now)
            self._send()
            self._tell("closed: everything is done")
            self._end(State.ENDED)

    def _submit(self, now: float) -> None:
        job = self._next
        assert job is not None
        self.machine.submit(now, job.body, key=job.key, delay=job.delay, ttl=job.ttl, urgent=job.urgent)
        self.submitted += 1
        kinds = (job.delay is not None, job.ttl is not None)
        self._around.history.add(Submitted(self._clock.now, self.id, self.submitted, job.key, job.body, *kinds))

    def _record_done(self) -> None:
        """Only what a handler has finished is asked for: everything else cannot be news."""
        history = self._around.history
        for group, sequence in history.unrecorded(self.id):
            if self.machine.is_done(group, sequence):
                history.add(Done(self._clock.now, self.id, group, sequence))
        for group in history.journals:
            if group in self._owed:
                self._look_at(group)

    def _look_at(self, group: str) -> None:
        """Of a journal all is asked for: what it said is done must have been stored before."""
        # A group that was given up and came back is asked for nothing of the time between.
        history, done_to = self._around.history, max(self._looked_to.get(group, 0), self._owed[group] - 1)
        for sequence in range(done_to + 1, self.submitted + 1):
            if not history.is_recorded(self.id, group, sequence):
                if not self.machine.is_done(group, sequence):
                    continue
                history.add(Done(self._clock.now, self.id, group, sequence))
            if sequence == done_to + 1:
                done_to = sequence
        self._looked_to[group] = done_to

    def _tell_waiting(self) -> None:
        if self._around.story.level:
            waiting_for = self.machine.waiting_for
            if waiting_for != self._waiting_for:
                self._waiting_for = waiting_for
                self._tell(f"waits: {waiting_for}" if waiting_for else "waits no longer")

    def _note_said(self, target: Target, datagram: bytes) -> None:
        if datagram[KIND] == FrameType.STAMP and datagram not in self._stamps_seen:
            self._stamps_seen.add(datagram)
            self._note_stamp(datagram)
        super()._note_said(target, datagram)

    def _note_stamp(self, datagram: bytes) -> None:
        try:
            stamp = decode_control(datagram)
        except WireError as error:
            raise AssertionError(f"a stamp that cannot be read: {error}") from error
        assert isinstance(stamp, Stamp)
        self.stamps.append((self._clock.now, stamp))
        for group in sorted(self._owed.keys() - {entry.group for entry in stamp.groups}):
            del self._owed[group]
            self._around.history.add(GivenUp(self._clock.now, self.id, group, stamp.at - 1))
        for entry in stamp.groups:
            if entry.group not in self._owed:
                self._owed[entry.group] = entry.at
                self._around.history.add(Owed(self._clock.now, self.id, entry.group, entry.at))
        self._around.story.stamped(self.name, stamp)


class ReceiverProcess(Process):
    """A receiving end and its handler. `rivals` names the other receivers that could start a message right now."""

    machine: ReceivingEnd

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        label: str,
        local: LocalClock,
        machine: ReceivingEnd,
        handler: Handler,
        *,
        group: str,
        concurrency: int = 1,
        retry_s: float = 0.05,
        attempts: int | None = None,
        on_killed: Callable[[ReceiverProcess], object] | None = None,
        rivals: Callable[[ReceiverProcess, int, int], tuple[str, ...]] | None = None,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        super().__init__(around, name, id, label, local, hears_data=True, buffer_bytes=buffer_bytes)
        self.machine = machine
        self._put_on_bus()
        self.group = group
        self.handler = handler
        self.concurrency = concurrency
        self.retry_s = retry_s
        self.attempts = attempts
        self._on_killed = on_killed or Process.crash
        self.handling = 0
        self.leaving = False
        self._rivals = rivals or (lambda _process, _stream, _sequence: ())
        self._tell(f"starts listening to {label!r} in {group} (id {id:016x}, clock rate {local.rate:.3f})")
        self._do(lambda: None)

    def leave(self) -> None:
        """SIGTERM: drain, then go."""
        if self.alive and not self.leaving:
            self._tell("LEAVES")
            self.leaving = True
            self._do(lambda: self.machine.leave(self.local_now))

    def _work(self) -> None:
        machine = self.machine
        self.leaving = self.leaving or machine.leaving  # told to by an order
        while machine.ready and self.handling < self.concurrency:
            messages = machine.take(self.local_now, self.concurrency - self.handling)
            if not messages:
                break
            if self.attempts is not None:
                self._send()  # that they are tried is told before they are
            for message in messages:
                self._note_start(message)
            for message in messages:
                if self.alive:
                    self._handle(message)
            if not self.alive:
                return
        events, machine.events[:] = machine.events[:], []
        for event in events:
            self._tell(event)
        if machine.left and not self.handling:
            self._send()
            self._tell("left")
            self._end(State.ENDED)

    def _note_start(self, message: StartedMessage) -> None:
        asked_at = None if message.lane_asked_at is None else self.local.true_time(message.lane_asked_at)
        start = Started(
            self._clock.now,
            self.name,
            self.group,
            message.sender,
            message.sequence,
            message.key,
            message.body,
            asked_at,
            self._rivals(self, message.sender, message.sequence),
            self.machine.wall.read(self.local_now),
            message.due_at,
            message.expires_at,
        )
        self._around.history.add(start)
        if self._around.story.level:
            self._tell(_start_text(start))
        self.handling += 1

    def _handle(self, message: StartedMessage) -> None:
        if self.attempts is not None and message.attempt > self.attempts:
            self._give_up(message, message.attempt - 1)
            return
        try:
            duration = self.handler(message)
        except KillsProcess:
            self._tell(f"is killed by {message.sender:x}/{message.sequence} at attempt {message.attempt}")
            self._on_killed(self)
            return
        except Exception as error:
            self._fail(message, error)
            return
        if duration:
            self._clock.after(duration, self._do, self._finish, message)
        else:
            self._finish(message)

    def _finish(self, message: StartedMessage) -> None:
        self.handling -= 1
        self._around.history.add(Finished(self._clock.now, self.name, self.group, message.sender, message.sequence))
        if self._around.story.level >= 2:
            self._tell(f"finished {message.sender:x}/{message.sequence}")
        self.machine.acknowledge(self.local_now, message)

    def _fail(self, message: StartedMessage, error: Exception) -> None:
        self.handling -= 1
        again = self.attempts is None or message.attempt < self.attempts
        names = (self.name, self.group, message.sender, message.sequence)
        self._around.history.add(Failed(self._clock.now, *names, again))
        self._tell(f"failed {message.sender:x}/{message.sequence}: {error!r}")
        if not again:
            self.handling += 1
            self._give_up(message, message.attempt)
        else:
            self.machine.retry(self.local_now, message, delay=self.retry_s)

    def _give_up(self, message: StartedMessage, attempts: int) -> None:
        self.handling -= 1
        if self.machine.reject(self.local_now, message, "on purpose"):
            limit = self.attempts or 0
            names = (self.name, self.group, message.sender, message.sequence)
            self._around.history.add(Dead(self._clock.now, *names, attempts, limit))


class TapProcess(Process):
    """A tap, which looks at everything as soon as it is there. Its luck is its own: the others fare as without it."""

    machine: TappingEnd

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        label: str,
        local: LocalClock,
        machine: TappingEnd,
        *,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        super().__init__(around, name, id, label, local, hears_data=True, buffer_bytes=buffer_bytes, luck=around.random)
        self.machine = machine
        self._put_on_bus()
        self.seen: list[tuple[int, int]] = []
        """(stream, sequence) of everything that it was shown."""
        self._tell(f"taps {label!r} (id {id:016x}, clock rate {local.rate:.3f})")
        self._do(lambda: None)

    def leave(self) -> None:
        """SIGTERM: look at what is there, then go."""
        if self.alive:
            self._tell("LEAVES")
            self._do(lambda: self.machine.leave(self.local_now))

    def _work(self) -> None:
        machine = self.machine
        while machine.ready:
            for message in machine.take(self.local_now, LOOKS_MAX):
                self.seen.append((message.sender, message.sequence))
                facts = (self.name, message.sender, message.sequence, message.key, message.body)
                self._around.history.add(Seen(self._clock.now, *facts))
        events, machine.events[:] = machine.events[:], []
        for event in events:
            self._tell(event)
        if machine.left:
            self._end(State.ENDED)


def _start_text(start: Started) -> str:
    key = f" key {start.key!r}" if start.key is not None else ""
    heir = f" (inherited, asked at {start.asked_at:.4f})" if start.asked_at is not None else ""
    rivals = f" !!! and so could {', '.join(start.rivals)}" if start.rivals else ""
    return f"starts {start.stream:x}/{start.sequence}{key}{heir}{rivals}"
