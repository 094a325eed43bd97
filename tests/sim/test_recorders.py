"""Journals in worlds where things go wrong: all is stored, none is done before it is, and who did what is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import RecorderMachine
from rvq.core.stream import Stream
from rvq.sim import Link, Promise, World, workloads
from rvq.sim.checkers import lost, repeated, stored, two_owners
from rvq.sim.deeds import untold
from rvq.sim.history import Done, Event, Owed, Recorded, Recording, Stored, Submitted, Took
from rvq.sim.machines import Build
from rvq.sim.mutants import HastyRecorder, MutantReceiver, _become, build_named
from rvq.wire.frames import Handled, Outcome

SEEDS = range(6)


def a_world(seed: int, *, recorders: int = 2, keys: int = 0, build: Build | None = None, **options: Any) -> World:
    """Recorders first, so that nothing is done that nobody is told of; then a sender and three receivers."""
    world = World(seed, build=build, verbose=1)
    for _ in range(recorders):
        world.recorder("work", sync_s=0.02)
    world.run(until=0.5)
    world.sender("work", messages=240, rate=80.0, burst=4, keys=keys)
    for _ in range(3):
        world.receiver("work", **options)
    world.run(until=1.5)
    return world


def finish(world: World) -> None:
    world.run_planned()
    world.heal()
    assert world.settle()
    world.run(until=world.now + 1.0)
    world.verdict().raise_if_bad()


def all_told(world: World) -> None:
    """Nothing befell recorders or their links, so what was done is what was told."""
    found = untold(world.history.events, world.accounts)
    assert not found, "\n".join(map(str, found[:9]))
    frames = [event.frame for event in world.history if type(event) is Recorded and isinstance(event.frame, Handled)]
    counters: dict[int, set[int]] = {}
    for frame in frames:
        counters.setdefault(frame.source, set()).add(frame.counter)
    assert all(seen == set(range(1, len(seen) + 1)) for seen in counters.values()), "no holes"


BEFALLS: dict[str, Callable[[World], object]] = {
    "nothing": lambda world: None,
    "one dies": lambda world: world.receivers[0].crash(),
    "one dies and another comes": lambda world: world.restart(world.receivers[0], after=0.2),
    "one leaves": lambda world: world.receivers[0].leave(),
    "one is stopped": lambda world: world.pause(world.receivers[0], 3.0),
    "one naps": lambda world: world.pause(world.receivers[0], 0.9),
    "one hears no sender": lambda world: world.cut(world.senders, world.receivers[0], 3.0),
    "no sender hears one": lambda world: world.cut(world.receivers[0], world.senders, 3.0),
    "the sender dies": lambda world: world.senders[0].crash(),
    "two come": lambda world: [world.receiver("work") for _ in range(2)],
}


@pytest.mark.parametrize("keys", [0, 6])
@pytest.mark.parametrize("befalls", BEFALLS)
def test_what_is_told_is_what_was_done(befalls: str, keys: int) -> None:
    for seed in SEEDS[:2]:
        world = a_world(seed, keys=keys)
        world.after(0.3, lambda world=world: BEFALLS[befalls](world))  # type: ignore[misc]
        if befalls == "the sender dies":
            world.run_planned()
            world.run(until=world.now + 8.0)
            world.verdict().raise_if_bad()
        else:
            finish(world)
        all_told(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_failures_deaths_and_times_to_live_are_told_too(seed: int) -> None:
    world = World(seed, verbose=1)
    world.recorder("work")
    world.run(until=0.5)

    def fails(_message: Any) -> float:
        if world.random.random() < 0.3:
            raise RuntimeError("on purpose")
        return 0.03

    for _ in range(2):
        world.receiver("work", handler=fails, attempts=2, options={"hand_over": True})
    times = lambda random, job: job if random.random() < 0.5 else workloads.replace(job, ttl=0.2)  # noqa: E731
    world.sender("work", messages=200, rate=100.0, burst=20, times=times)
    world.after(2.0, lambda: world.receiver("work", handler=fails, attempts=2, options={"hand_over": True}))
    finish(world)
    all_told(world)
    told = {
        run.outcome
        for event in world.history
        if type(event) is Recorded and isinstance(event.frame, Handled)
        for run in event.frame.runs
    }
    assert told >= {Outcome.ACKED, Outcome.DEAD, Outcome.EXPIRED, Outcome.RETRIED}


def test_what_is_handed_over_is_told() -> None:
    world = World(1, verbose=1)
    world.recorder("work")
    world.run(until=0.5)
    options = {"hand_over": True}
    world.receiver("work", handler=lambda _message: 0.1, options=options)
    world.run(until=1.5)
    world.sender("work", messages=100, rate=1000.0, burst=100)
    world.after(1.0, lambda: world.receiver("work", handler=lambda _message: 0.1, options=options))
    finish(world)
    all_told(world)
    assert sum(receiver.machine.stats.handed_over for receiver in world.receivers) > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_journals_are_whole_whatever_befalls_their_recorders(seed: int) -> None:
    world = a_world(seed, recorders=3, keys=seed % 2 * 5)
    world.recorder("work", group="copy")
    world.disturb(Link(loss=0.05, duplicate=0.05, reorder=0.05))
    world.at(2.0, world.recorders[0].crash)
    world.at(2.3, lambda: world.pause(world.recorders[1], 2.0))
    world.at(2.6, world.recorders[2].leave)
    finish(world)
    for group in ("journal", "copy"):
        safe = [place for recorder in world.recorders if recorder.group == group for place in recorder.stored]
        first = min(event.first for event in world.history if type(event) is Owed and event.group == group)
        assert {sequence for _, sequence in safe} == set(range(first, 241)), group


def test_recorders_share_and_two_journals_are_two_copies() -> None:
    world = a_world(1, recorders=3)
    world.recorder("work", group="copy")
    finish(world)
    *sharing, copy = world.recorders
    assert all(len(recorder.stored) > 40 for recorder in sharing)
    assert len({place for recorder in sharing for place in recorder.stored}) == 240
    assert sum(len(recorder.stored) for recorder in sharing) == 240, "each only its own"
    assert len(copy.stored) == len(set(copy.stored)) > 100


def test_a_heartbeat_is_enough_for_a_bus_without_recorders() -> None:
    world = World(1, verbose=2)
    world.sender("work", messages=50)
    world.receiver("work")
    finish(world)
    assert not [line for line in world.story.lines if "Handled" in line]


# --- the checks can fail ------------------------------------------------------------------------------------------


def promises(world: World) -> set[Promise]:
    world.run_planned()
    world.settle()
    world.run(until=world.now + 1.0)
    return {violation.promise for violation in world.verdict().violations}


def test_one_that_says_stored_too_early_is_found_at_once_and_when_it_dies() -> None:
    assert Promise.STORED in promises(a_world(1, build=build_named("recorder-acknowledges-before-stored")))
    world = World(1, build=Build(recorder=HastyRecorder))
    world.recorder("work", sync_s=5.0)
    world.sender("work", messages=20)
    world.at(2.0, world.recorders[0].crash)
    world.at(2.0, lambda: world.recorder("work"))
    assert {Promise.LOST, Promise.STORED} <= promises(world)


class HidesLostLanes(Stream):
    """Tells only of lanes that it has."""

    def reported(self, now: float) -> None:
        if self.work.outcomes is not None:
            self.work.outcomes._runs = [run for run in self.work.outcomes._runs if run.piece.lane.startable]
        super().reported(now)


class HidingReceiver(MutantReceiver):
    stream_kind = HidesLostLanes


class DeafToRecorders(ReceiverMachine):
    """Does not know any recorder."""

    def _on_recorder(self, *_: Any) -> None:
        pass


class QuietRecorder(RecorderMachine):
    """Does not answer those who are new."""

    def _beat_soon(self, now: float, *, spread: bool = False) -> None:
        if self._beats.counter == 0:
            super()._beat_soon(now, spread=spread)


@pytest.mark.parametrize(
    "build",
    [Build(receiver=HidingReceiver), Build(receiver=DeafToRecorders), Build(recorder=QuietRecorder)],
    ids=["hides lost lanes", "knows no recorder", "new ones are not answered"],
)
def test_deeds_that_are_not_told_are_found(build: Build) -> None:
    found = []
    for seed in range(8):
        world = a_world(seed, build=build, handler=lambda message: 4.0 if message.sequence % 20 == 0 else 0.03)
        world.after(0.3, lambda world=world: world.cut(world.senders, world.receivers[0], 3.0))  # type: ignore[misc]
        world.after(0.3, lambda world=world: world.receiver("work"))  # type: ignore[misc]
        world.run_planned()
        world.settle()
        world.run(until=world.now + 1.0)
        assert world.verdict().ok, "nobody claims what it did not do"
        found += untold(world.history.events, world.accounts)
    assert found


def journal(*events: Event) -> list[Event]:
    return [Recording(0.0, "j1", "journal"), *events]


SUBMITTED: list[Event] = [Submitted(0.0, 7, sequence, None, sequence) for sequence in (1, 2)]
OWED = Owed(0.1, 7, "journal", 1)


def took(sequence: int, who: str = "j1", **more: Any) -> Took:
    return Took(1.0, who, "journal", 7, sequence, None, sequence, **more)


def safe(sequence: int, who: str = "j1", at: float = 2.0) -> Stored:
    return Stored(at, who, "journal", 7, sequence)


def done(sequence: int, at: float = 3.0) -> Done:
    return Done(at, 7, "journal", sequence)


def found_by(check: Callable[[Sequence[Event]], list[Any]], *events: Event) -> list[Promise]:
    return [violation.promise for violation in check(journal(*SUBMITTED, OWED, *events))]


def test_what_is_never_stored_is_lost_though_it_may_expire() -> None:
    assert found_by(lost, safe(1), done(1), safe(2), done(2)) == []
    assert found_by(lost, safe(1), done(1)) == [Promise.LOST]
    expiring = [Submitted(0.0, 7, 1, None, 1, may_expire=True), OWED]
    assert [violation.promise for violation in lost(journal(*expiring))] == [Promise.LOST]
    assert lost(expiring) == [], "in a group that is no journal it may"


def test_what_is_done_in_a_journal_and_not_stored_is_found() -> None:
    assert found_by(stored, safe(1), done(1)) == []
    assert found_by(stored, done(1), safe(1)) == [Promise.STORED]
    assert found_by(stored, safe(2), done(1)) == [Promise.STORED]
    assert stored([done(1)]) == [], "of other groups nothing is known"


def test_what_two_recorders_store_is_found_unless_one_could_not_know() -> None:
    assert found_by(repeated, took(1), safe(1), took(2, "j2"), safe(2, "j2")) == []
    assert found_by(repeated, took(1), safe(1), took(1, "j2")) == [Promise.REPEATED]
    assert found_by(repeated, took(1), safe(1), done(1), took(1, "j2", asked_at=2.5)) == []
    assert found_by(repeated, took(1), safe(1), done(1), took(1, "j2", asked_at=3.5)) == [Promise.REPEATED]


def test_what_two_recorders_could_take_is_found() -> None:
    assert found_by(two_owners, took(1, rivals=("j2",))) == [Promise.TWO_OWNERS]


def test_a_part_that_becomes_its_mutant_is_one() -> None:
    """The receivers above are made of these."""
    world = a_world(1, build=Build(receiver=HidingReceiver))
    stream = next(iter(world.receivers[0].machine.streams.values()))  # type: ignore[attr-defined]
    _become(stream, HidesLostLanes)
    assert type(stream) is HidesLostLanes
