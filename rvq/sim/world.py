"""A world: senders, receivers, a network and time, all from one seed. Owns building, running and disturbing them.

The same seed gives the same world, event by event, so a failure found once can be looked at for as long as it takes:

    import rvq.sim

    world = rvq.sim.World(seed=1)
    world.sender("work", bodies=[{"job": n} for n in range(100)], rate=50)
    alice = world.receiver("work", handler=my_function)
    world.receiver("work", handler=my_function)
    world.at(1.0, alice.crash)
    world.run()
    world.verdict().raise_if_bad()

A handler is a plain function of the message. It is called when the handling starts; it may return how long that takes
in virtual seconds, and it may raise: then the message is tried again. If its process crashes meanwhile, the message is
not acknowledged and someone else handles it, which is what the function should be ready for.

`world.tap(label)` adds one who sees everything and owns nothing; what it was shown is judged too.
`world.recorder(label)` adds one who stores what it is given, and what it is told of the others' work.
`world.observer()` adds one who only looks on, as `rvq top` does: see its `snapshot()`.
`world.order(label, what, whom)` gives an order, as `rvq drain`, `weight`, `pause` and `resume` do.

Faults: `pause`, `resume`, `crash` and (all but senders) `leave` of each process; `restart`, `cut`, `partition`, `clog`,
`disturb` and `heal` of the world. `world.at(time, action)` plans any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

from rvq.core.about import Home
from rvq.core.asker import AskerMachine, Wish
from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import JOURNAL
from rvq.core.stats import Stats
from rvq.sim.asking import AskerProcess
from rvq.sim.attacker import Attacker
from rvq.sim.checkers import Promise, Verdict, Violation, judge
from rvq.sim.clock import Clock, LocalClock
from rvq.sim.deeds import claimed
from rvq.sim.fanned import FannedBus
from rvq.sim.flooder import Flooder
from rvq.sim.history import History
from rvq.sim.machines import PRODUCT, Build, StartedMessage
from rvq.sim.network import BUFFER_BYTES, Fault, Link, Network
from rvq.sim.observing import ObserverProcess
from rvq.sim.process import Handler, Job, Process, ReceiverProcess, SenderProcess, State, Surroundings, TapProcess
from rvq.sim.recording import RecorderProcess
from rvq.sim.sealed import SealedBus
from rvq.sim.story import Story
from rvq.timings import Timings
from rvq.wire.frames import FrameType, OrderKind

CLOCK_ERROR_MAX = 0.045
"""How far a process's clock may run fast or slow: two of them are then apart by less than the promised 10 %."""

SETTLE_S_MAX = 60.0
"""Virtual time in which a healed world must be done: several times the longest pause that any rule takes."""

INSPECT_EVERY_S = 0.5
SETTLE_STEP_S = 0.05
WALL_CLOCK_START = 1_700_000_000.0
RESTART_S = 0.3
"""Before a receiver that was killed by its handler is started again."""
HANDLING_S = 0.005
"""Mean duration of handling a message when the user gave no handler."""

AnyProcess = TypeVar("AnyProcess", bound=Process)
Who = Process | Iterable[Process]


class World:
    """Everything that happens follows from `seed` and from what is asked of the world.

    link: the network when nothing is wrong with it.  clock_error: how far clocks run fast or slow at most.
    build: which machines to run; the product's if not given.
    verbose: 1 keeps a story, 2 with every frame; `out` gets its lines.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        link: Link | None = None,
        timings: Timings | None = None,
        clock_error: float = CLOCK_ERROR_MAX,
        build: Build | None = None,
        verbose: int = 0,
        out: Callable[[str], object] | None = None,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.clock = Clock()
        self.history = History()
        self.story = Story(self.clock, verbose, out)
        self.network = Network(self.clock, self.random, link)
        self.senders: list[SenderProcess] = []
        self.receivers: list[ReceiverProcess] = []
        self.taps: list[TapProcess] = []
        self.recorders: list[RecorderProcess] = []
        self.askers: list[AskerProcess] = []
        self.observers: list[ObserverProcess] = []
        self.build = build or PRODUCT
        self.timings = timings or Timings()
        self._clock_error = clock_error
        sealing = self.build.sealing
        self.bus = None if sealing is None else SealedBus(seed, self.clock, self.history, sealing)
        """The sealed bus that all are on; None if frames are plain."""
        if self.bus is not None:
            self.network.kind_of = self.bus.kind_of
        fanout = self.build.fanout
        fan = None if fanout is None else FannedBus(seed, self.network, fanout)
        self._around = Surroundings(self.clock, self.network, self.history, self.story, self.random, self.bus, fan)
        self._again: dict[Process, Callable[[], Process]] = {}
        self._names: set[str] = set()
        self._planned = 0
        self.clock.after(INSPECT_EVERY_S, self._inspect)

    @property
    def now(self) -> float:
        """The true time."""
        return self.clock.now

    @property
    def processes(self) -> list[Process]:
        return [*self.senders, *self.receivers, *self.taps, *self.recorders, *self.observers, *self.askers]

    # --- building -------------------------------------------------------------------------------------------------

    def sender(
        self,
        label: str,
        *,
        messages: int = 0,
        bodies: Iterable[Any] | None = None,
        rate: float = 100.0,
        burst: int = 1,
        keys: int | Sequence[str | bytes | None] = 0,
        times: Callable[[Random, Job], Job] | None = None,
        close: bool = False,
        name: str | None = None,
        id: int | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        options: Mapping[str, Any] | None = None,
    ) -> SenderProcess:
        """Start a sender now. It submits `bodies` (or so many `messages`), `burst` at a time, about `rate` per second.

        keys: that many keys taken at random, or one key per message.  times: makes some of the jobs wait, expire or
        overtake.  close: say goodbye when everything is done.
        options: handed to the machine, such as frame_bytes.
        """
        name = self._name(name or f"s{len(self.senders) + 1}")
        contents = bodies if bodies is not None else (f"{name}/{n}" for n in range(1, messages + 1))
        jobs = self._jobs(list(contents), rate, burst, keys, times)
        return self._start_sender(label, jobs, name, id, close, buffer_bytes, options or {})

    def receiver(
        self,
        label: str,
        *,
        group: str = "default",
        weight: int = 1,
        handler: Handler | None = None,
        concurrency: int = 1,
        retry_s: float = 0.05,
        attempts: int | None = None,
        name: str | None = None,
        id: int | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        options: Mapping[str, Any] | None = None,
    ) -> ReceiverProcess:
        """Start a receiver now. It handles `concurrency` messages at once and retries failed ones after `retry_s`.

        attempts: gives a message up that was tried so often, here or by others that died over it. A handler that
        raises `KillsProcess` ends its receiver, and another is started in its place.
        """
        name = self._name(name or f"r{len(self.receivers) + 1}")
        id = self._id() if id is None else id
        local = self._local_clock()
        machine = self.build.receiver(
            label,
            id,
            group=group,
            weight=weight,
            timings=self.timings,
            random=Random(self.random.getrandbits(64)),
            now=local.read(self.now),
            wall_offset=WALL_CLOCK_START - local.offset,
            home=Home(name),
            **{"receive_bytes": buffer_bytes // 2, "tracked": attempts is not None, **(options or {})},
        )
        process = ReceiverProcess(
            self._around,
            name,
            id,
            label,
            local,
            machine,
            handler or self._handle,
            group=group,
            concurrency=concurrency,
            retry_s=retry_s,
            attempts=attempts,
            on_killed=lambda process: self.restart(process, after=RESTART_S),
            rivals=self._rivals,
            buffer_bytes=buffer_bytes,
        )
        self.receivers.append(process)
        self._again[process] = lambda: self.receiver(
            label,
            group=group,
            weight=weight,
            handler=handler,
            concurrency=concurrency,
            retry_s=retry_s,
            attempts=attempts,
            name=name,
            buffer_bytes=buffer_bytes,
            options=options,
        )
        return process

    def tap(self, label: str, *, name: str | None = None, buffer_bytes: int = BUFFER_BYTES) -> TapProcess:
        """Start a tap now: it sees everything and owns nothing. Nothing is drawn for it from the world's randomness, so
        that the others' history is the same without it, for as long as it does not have to ask for anything."""
        name = self._name(name or f"t{len(self.taps) + 1}")
        random = Random(f"{self.seed} {name}")
        local = self._local_clock(random)
        id = random.getrandbits(63) or 1
        machine = self.build.tap(
            label,
            id,
            timings=self.timings,
            random=Random(random.getrandbits(64)),
            now=local.read(self.now),
            wall_offset=WALL_CLOCK_START - local.offset,
        )
        around = replace(self._around, random=random)
        process = TapProcess(around, name, id, label, local, machine, buffer_bytes=buffer_bytes)
        self.taps.append(process)
        self._again[process] = lambda: self.tap(label, name=name, buffer_bytes=buffer_bytes)
        return process

    def observer(self, *labels: str, name: str | None = None, buffer_bytes: int = BUFFER_BYTES) -> ObserverProcess:
        """Start an observer now, of these labels or of all. As with taps, nothing is drawn for it from the world's
        randomness."""
        name = self._name(name or f"o{len(self.observers) + 1}")
        random = Random(f"{self.seed} {name}")
        local = self._local_clock(random)
        machine = self.build.observer(
            labels, timings=self.timings, now=local.read(self.now), wall_offset=WALL_CLOCK_START - local.offset
        )
        around = replace(self._around, random=random)
        id = random.getrandbits(63) or 1
        process = ObserverProcess(around, name, id, local, machine, buffer_bytes=buffer_bytes)
        self.observers.append(process)
        self._again[process] = lambda: self.observer(*labels, name=name, buffer_bytes=buffer_bytes)
        return process

    def recorder(
        self,
        label: str,
        *,
        group: str = JOURNAL,
        sync_s: float = 0.01,
        weight: int = 1,
        name: str | None = None,
        id: int | None = None,
        buffer_bytes: int = BUFFER_BYTES,
        options: Mapping[str, Any] | None = None,
    ) -> RecorderProcess:
        """Start a recorder now. Its disk takes `sync_s` on average; then what it has taken is safe, and said to be."""
        name = self._name(name or f"j{len(self.recorders) + 1}")
        id = self._id() if id is None else id
        local = self._local_clock()
        machine = self.build.recorder(
            label,
            id,
            group=group,
            weight=weight,
            timings=self.timings,
            random=Random(self.random.getrandbits(64)),
            now=local.read(self.now),
            wall_offset=WALL_CLOCK_START - local.offset,
            home=Home(name),
            **{"receive_bytes": buffer_bytes // 2, **(options or {})},
        )
        process = RecorderProcess(
            self._around,
            name,
            id,
            label,
            local,
            machine,
            group=group,
            sync_s=sync_s,
            rivals=self._rivals,
            buffer_bytes=buffer_bytes,
        )
        self.recorders.append(process)
        self._again[process] = lambda: self.recorder(
            label,
            group=group,
            sync_s=sync_s,
            weight=weight,
            name=name,
            buffer_bytes=buffer_bytes,
            options=options,
        )
        return process

    def attacker(self, label: str) -> Attacker:
        """Somebody without a key, who hears everything from now on, repeats it and forges."""
        return Attacker(self.clock, self.network, label, Random(f"{self.seed} attacker"))

    def flooder(self, label: str, until: float, kinds: Container[str] = ()) -> Flooder:
        """Somebody on a bus without a key, who says what he likes for so long; or of it these kinds only."""
        return Flooder(self.clock, self.network, label, Random(f"{self.seed} flooder"), until, kinds)

    def order(self, label: str, what: OrderKind, whom: str, value: int = 0) -> AskerProcess:
        """Give an order now, to the receiver whose id begins so, or to a group. Nothing is drawn for whoever gives it
        from the world's randomness."""
        name = self._name(f"o{len(self.askers) + 1}")
        random = Random(f"{self.seed} {name}")
        local = self._local_clock(random)
        machine = AskerMachine(
            label,
            random.getrandbits(63) or 1,
            Wish(what, whom, value),
            nonce=random.getrandbits(63),
            by=name,
            timings=self.timings,
            now=local.read(self.now),
            wall_offset=WALL_CLOCK_START - local.offset,
        )
        words = f"{what.name} {whom}{f' {value}' if value else ''}"
        process = AskerProcess(replace(self._around, random=random), name, label, local, machine, words)
        self.askers.append(process)
        return process

    def _start_sender(
        self,
        label: str,
        jobs: Iterator[Job],
        name: str,
        id: int | None,
        close: bool,
        buffer_bytes: int,
        options: Mapping[str, Any],
    ) -> SenderProcess:
        id = self._id() if id is None else id
        local = self._local_clock()
        machine = self.build.sender(
            label,
            id,
            timings=self.timings,
            random=Random(self.random.getrandbits(64)),
            now=local.read(self.now),
            wall_offset=WALL_CLOCK_START - local.offset,
            home=Home(name),
            **options,
        )
        process = SenderProcess(
            self._around, name, id, label, local, machine, jobs, close_when_done=close, buffer_bytes=buffer_bytes
        )
        self.senders.append(process)
        self._again[process] = lambda: self._start_sender(
            label, process.jobs_left(), self._name(name), None, close, buffer_bytes, options
        )
        return process

    def _jobs(
        self,
        bodies: list[Any],
        rate: float,
        burst: int,
        keys: int | Sequence[str | bytes | None],
        times: Callable[[Random, Job], Job] | None,
    ) -> Iterator[Job]:
        """The work in order. Bursts are `burst / rate` apart on average."""
        # Drawn beforehand: what a sender is given must not depend on when it gets round to it.
        random = Random(self.random.getrandbits(64))
        for index, body in enumerate(bodies):
            pause = random.uniform(0.5, 1.5) * burst / rate if index % burst == 0 and index else 0.0
            if isinstance(keys, int):
                job = Job(body, f"key-{random.randrange(keys)}" if keys else None, pause)
            else:
                job = Job(body, keys[index % len(keys)] if keys else None, pause)
            yield times(random, job) if times else job

    def _handle(self, _message: StartedMessage) -> float:
        return self.random.expovariate(1 / HANDLING_S)

    def _local_clock(self, random: Random | None = None) -> LocalClock:
        error, random = self._clock_error, random or self.random
        return LocalClock(random.uniform(0.0, 10_000.0), 1.0 + random.uniform(-error, error))

    def _id(self) -> int:
        return self.random.getrandbits(63) or 1

    def _name(self, wanted: str) -> str:
        name = wanted if wanted not in self._names else self._next_name(wanted)
        self._names.add(name)
        return name

    def _next_name(self, name: str) -> str:
        """r1 comes back as r1.2, then r1.3."""
        base = name.partition(".")[0]
        return next(new for n in range(2, 10_000) if (new := f"{base}.{n}") not in self._names)

    @property
    def _owners(self) -> list[ReceiverProcess | RecorderProcess]:
        return [*self.receivers, *self.recorders]

    def _rivals(self, process: ReceiverProcess | RecorderProcess, stream: int, sequence: int) -> tuple[str, ...]:
        """Who else could start this message now. Paused ones count: their own clocks tell whether their leases hold."""
        return tuple(
            other.name
            for other in self._owners
            if other is not process
            and other.alive
            and (other.label, other.group) == (process.label, process.group)
            and other.machine.may_start(other.local_now, stream, sequence)
        )

    # --- running --------------------------------------------------------------------------------------------------

    def at(self, when: float, action: Callable[[], object]) -> None:
        """Do this at that true time."""
        if when < self.now:
            raise ValueError(f"{when} is in the past: it is {self.now:.3f}")
        self._planned += 1
        self.clock.at(when, self._carry_out, action)

    def after(self, delay: float, action: Callable[[], object]) -> None:
        """Do this so many seconds from now."""
        self.at(self.now + delay, action)

    def run(self, until: float | None = None) -> None:
        """Go on until this time; without one, until everything is done (or a minute of virtual time has passed)."""
        if until is None:
            self.settle()
        else:
            self.clock.run(until)

    def settle(self, timeout: float = SETTLE_S_MAX) -> bool:
        """Go on until everything is done, for at most this many virtual seconds. True if it is."""
        deadline = self.now + timeout
        while not self.settled and self.now < deadline:
            self.clock.run(min(self.now + SETTLE_STEP_S, deadline))
        return self.settled

    @property
    def settled(self) -> bool:
        """No sender has anything undone, no handler runs, nobody is about to leave, nothing is planned."""
        return (
            not self._planned
            and all(sender.finished for sender in self.senders)
            and not any(r.state is State.RUNNING and (r.handling or r.leaving) for r in self.receivers)
            and not any(r.state is State.RUNNING and r.busy for r in self.recorders)
            and not any(asker.state is State.RUNNING for asker in self.askers)
        )

    def run_planned(self) -> None:
        """Go on until every action that was planned with `at` and `after` has happened."""
        while self._planned:
            self.run(until=self.now + SETTLE_STEP_S)

    def verdict(self, *, converged: bool = True) -> Verdict:
        """Were the promises kept? Without `converged` (a world stopped midway), what is not done yet is not lost,
        and who is still there may yet leave."""
        for process in self.processes:
            process.check()
        events, also = self.history.events, list(claimed(self.history.events))
        if converged:
            also += self._still_here()
        senders = {sender.id: sender.machine.stats for sender in self.senders}
        return judge(self.seed, events, self.accounts, senders, converged=converged, virtual_s=self.now, also=also)

    def _still_here(self) -> Iterator[Violation]:
        """After all calmed down: whoever was told to leave is gone, whether its senders are alive or dead."""
        for process in self._owners:
            machine = process.machine
            if process.leaving and process.state is State.RUNNING:
                why = f" and waits for {machine.waiting_for}" if isinstance(machine, ReceiverMachine) else ""
                yield Violation(Promise.LEFT, self.now, f"{process.name} was told to leave, and is still there{why}")

    @property
    def accounts(self) -> dict[str, Stats]:
        """What receivers and recorders counted, by their names."""
        return {process.name: process.machine.stats for process in self._owners}

    def _carry_out(self, action: Callable[[], object]) -> None:
        self._planned -= 1
        action()

    def _inspect(self) -> None:
        for process in self.processes:
            if process.alive:
                process.check()
                process.check_wakes(INSPECT_EVERY_S)
        self.clock.after(INSPECT_EVERY_S, self._inspect)

    # --- faults ---------------------------------------------------------------------------------------------------

    def restart(self, process: AnyProcess, after: float = 0.0) -> None:
        """kill -9, and a new process (with a new id) in its place. A sender goes on with what it had not submitted."""
        process.crash()
        if after > 0:
            self.after(after, self._again[process])
        else:
            self._again[process]()

    def pause(self, process: Process, for_s: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds."""
        process.pause()
        self.after(for_s, process.resume)

    def cut(
        self, sources: Who, destinations: Who, for_s: float | None = None, *, kinds: Iterable[FrameType] | None = None
    ) -> Fault:
        """Nothing (or no frame of these types) gets from the first to the second any more; the way back stays open."""
        if kinds is None:
            return self._fault("CUT", self.network.cut, sources, destinations, for_s)
        kinds = list(kinds)
        word = f"CUT ({' '.join(kind.name for kind in kinds)})"
        return self._fault(word, lambda a, b: self.network.sieve(a, b, kinds), sources, destinations, for_s)

    def clog(self, sources: Who, destinations: Who, for_s: float | None = None) -> Fault:
        """What goes from the first to the second is held, and arrives all at once when the clog is gone."""
        return self._fault("CLOG", self.network.clog, sources, destinations, for_s)

    def partition(self, *sides: Who, for_s: float | None = None) -> Fault:
        """Nobody hears anybody of another side."""
        named = [_names(side) for side in sides]
        self.story.tell("network", f"PARTITION {' | '.join(map(' '.join, named))}{_for(for_s)}")
        return self._end_later(self.network.partition(*named), "PARTITION over", for_s)

    def disturb(self, link: Link, sources: Who | None = None, destinations: Who | None = None) -> None:
        """Make all links, or those from the first to the second, like this one until `heal`."""
        if sources is None and destinations is None:
            self.network.link = link
            self.story.tell("network", f"all links: {link}")
            return
        everyone = self.processes
        first, second = _names(sources or everyone), _names(destinations or everyone)
        self.network.set_link(first, second, link)
        self.story.tell("network", f"links {' '.join(first)} -> {' '.join(second)}: {link}")

    def heal(self) -> None:
        """The network is as at the start, and whoever was paused goes on. The dead stay dead."""
        self.story.tell("world", "HEALED")
        self.network.heal()
        for process in self.processes:
            process.resume()

    def _fault(
        self,
        word: str,
        begin: Callable[[Iterable[str], Iterable[str]], Fault],
        sources: Who,
        destinations: Who,
        for_s: float | None,
    ) -> Fault:
        first, second = _names(sources), _names(destinations)
        what = f"{word} {' '.join(first)} -> {' '.join(second)}"
        self.story.tell("network", what + _for(for_s))
        return self._end_later(begin(first, second), f"{what} over", for_s)

    def _end_later(self, fault: Fault, words: str, for_s: float | None) -> Fault:
        if for_s is not None:
            self.after(for_s, lambda: self._end(fault, words))
        return fault

    def _end(self, fault: Fault, words: str) -> None:
        if not fault.over:
            self.story.tell("network", words)
            fault.end()

    # --- who is who -----------------------------------------------------------------------------------------------

    def live_receivers(self, label: str | None = None, group: str | None = None) -> list[ReceiverProcess]:
        """Those that are not gone, in the order of their ids: the first is the keeper, if everyone hears it."""
        live = [r for r in self.receivers if r.alive and label in (None, r.label) and group in (None, r.group)]
        return sorted(live, key=lambda receiver: receiver.id)

    def live_recorders(self, group: str | None = None) -> list[RecorderProcess]:
        return [recorder for recorder in self.recorders if recorder.alive and group in (None, recorder.group)]

    def live_senders(self, label: str | None = None) -> list[SenderProcess]:
        return [sender for sender in self.senders if sender.alive and label in (None, sender.label)]


def _names(who: Who) -> list[str]:
    return [who.name] if isinstance(who, Process) else [process.name for process in who]


def _for(for_s: float | None) -> str:
    return "" if for_s is None else f" for {for_s:.3f} s"
