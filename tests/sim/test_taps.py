"""Worlds with taps: a tap sees everything once, and whatever befalls it, nobody else notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rvq.sim import Link, Plan, Promise, TapProcess, World, build_world, workloads
from rvq.sim.checkers import seen
from rvq.sim.history import Ended, Event, Seen, Submitted
from rvq.sim.workloads import LABEL

SEEDS = range(6)
BAD = Link(loss=0.1, duplicate=0.1, reorder=0.1)


def make_world(seed: int, *, link: Link | None = None, slow: float | None = None, keys: int = 0) -> World:
    """Three receivers, and two senders who go on for some three seconds."""
    world = World(seed, link=link)
    handler = None if slow is None else lambda _message: slow
    for _ in range(3):
        world.receiver("work", handler=handler, concurrency=1 if slow is None else 1000)
    world.sender("work", messages=400, rate=150, burst=5, keys=keys)
    world.sender("work", messages=100, rate=40, options={"frame_bytes": 600}, bodies=[bytes(1500)] * 100)
    return world


def finish(world: World) -> None:
    assert world.settle(), "not done after a minute"
    world.run(until=world.now + 3.0)
    world.verdict().raise_if_bad()


def without_taps(world: World) -> list[Event]:
    """The history of everyone else."""
    names = {tap.name for tap in world.taps}
    return [
        event
        for event in world.history
        if not isinstance(event, Seen) and not (isinstance(event, Ended) and event.process in names)
    ]


def submitted(world: World, label: str = "work") -> set[tuple[int, int]]:
    streams = {sender.id for sender in world.senders if sender.label == label}
    return {(e.stream, e.sequence) for e in world.history if isinstance(e, Submitted) and e.stream in streams}


def repaired_for(tap: TapProcess) -> int:
    return tap.machine.stats.repaired


# --- sees everything ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_it_sees_every_message_once_under_loss_duplication_and_reordering(seed: int) -> None:
    """Handlers take a second: so senders have what was lost for as long as a tap asks for it."""
    world = make_world(seed, link=BAD, slow=1.0)
    tap = world.tap("work")
    finish(world)
    assert set(tap.seen) == submitted(world) and len(tap.seen) == len(set(tap.seen))
    assert tap.machine.stats.lost == 0 and repaired_for(tap), "something was lost on the way"


@pytest.mark.parametrize("seed", SEEDS)
def test_what_it_does_not_see_it_counts(seed: int) -> None:
    """Handlers are quick: what is done everywhere cannot be asked for any more."""
    world = make_world(seed, link=BAD, keys=5 * (seed % 2))
    tap = world.tap("work")
    finish(world)
    assert set(tap.seen) <= submitted(world)
    assert len(tap.seen) + tap.machine.stats.lost == len(submitted(world)), "from the first message on"


@pytest.mark.parametrize("seed", SEEDS)
def test_one_that_comes_later_sees_what_is_sent_from_then_on(seed: int) -> None:
    world = make_world(seed)
    world.run(until=2.0)
    sent = submitted(world)
    tap = world.tap("work")
    finish(world)
    assert set(tap.seen) == submitted(world) - sent


def test_it_sees_its_label_and_no_other() -> None:
    world = make_world(1)
    other, tap = world.tap("other"), world.tap("work")
    finish(world)
    assert set(tap.seen) == submitted(world) and not other.seen


def test_one_that_leaves_has_seen_what_was_there() -> None:
    world = make_world(1)
    tap = world.tap("work")
    world.at(2.0, tap.leave)
    finish(world)
    assert not tap.alive and 0 < len(tap.seen) < len(submitted(world))


# --- changes nothing ----------------------------------------------------------------------------------------------

BEFALLS: dict[str, Callable[[World, TapProcess], object]] = {
    "nothing": lambda world, tap: None,
    "killed": lambda world, tap: tap.crash(),
    "stopped": lambda world, tap: tap.pause(),
    "stopped for a while": lambda world, tap: world.pause(tap, 1.5),
    "cut off": lambda world, tap: world.partition([tap], [*world.senders, *world.receivers]),
    "leaves": lambda world, tap: tap.leave(),
    "restarted": lambda world, tap: world.restart(tap, after=0.3),
}


@pytest.mark.parametrize("befalls", BEFALLS)
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_everything_happens_as_if_it_were_not_there(seed: int, befalls: str) -> None:
    alone, tapped = make_world(seed, keys=5), make_world(seed, keys=5)
    taps = [tapped.tap("work") for _ in range(2)]
    tapped.at(2.0, lambda: BEFALLS[befalls](tapped, taps[0]))
    alone.at(2.0, lambda: None)
    for world in (alone, tapped):
        finish(world)
    assert without_taps(alone) == without_taps(tapped), "to the microsecond"
    assert [sender.stamps for sender in alone.senders] == [sender.stamps for sender in tapped.senders]
    assert set(taps[1].seen) == submitted(tapped)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_that_hears_badly_makes_no_table_no_stamp_and_nobody_wait(seed: int) -> None:
    alone, tapped = make_world(seed), make_world(seed)
    tap = tapped.tap("work")
    tapped.disturb(Link(loss=0.3), tapped.senders, [tap])
    for world in (alone, tapped):
        finish(world)
    assert repaired_for(tap) and set(tap.seen) < submitted(tapped)

    def members(world: World) -> list[list[tuple[int, ...]]]:
        return [
            [tuple(m.id for entry in stamp.groups for m in entry.members) for _, stamp in sender.stamps]
            for sender in world.senders
        ]

    assert members(alone) == members(tapped)
    # It asks, so timers of senders fire at other moments; but what is sent is the workload's, and nobody waits for it.
    assert [event.sequence for event in alone.history if isinstance(event, Submitted)] == [
        event.sequence for event in tapped.history if isinstance(event, Submitted)
    ]
    sent_at = [max(e.at for e in world.history if isinstance(e, Submitted)) for world in (alone, tapped)]
    assert sent_at[0] == sent_at[1], "no submission was held up"


@pytest.mark.parametrize("seed", range(40))
def test_random_worlds_with_taps_keep_every_promise(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swarm's worlds, with all their faults, and two taps of which one dies."""
    worlds: list[World] = []

    def with_taps(seed: int, **options: Any) -> tuple[World, Plan]:
        world, plan = build_world(seed, **options)
        doomed, _ = world.tap(LABEL), world.tap(LABEL)
        world.at(1.0, doomed.crash)
        worlds.append(world)
        return world, plan

    monkeypatch.setattr(workloads, "build_world", with_taps)
    workloads.run_seed(seed).raise_if_bad()
    (world,) = worlds
    assert world.taps[1].alive and world.taps[1].seen


# --- the checker can fail -----------------------------------------------------------------------------------------

SUBMITTED: list[Event] = [Submitted(0.0, 7, sequence, None, f"m{sequence}") for sequence in (1, 2, 3)]


def shown(*sequences: int, tap: str = "t1", body: str | None = None) -> list[Event]:
    return [Seen(1.0, tap, 7, sequence, None, body or f"m{sequence}") for sequence in sequences]


def test_what_is_seen_once_and_in_order_is_good() -> None:
    assert not seen([*SUBMITTED, *shown(1, 3), *shown(1, 2, 3, tap="t2")])


@pytest.mark.parametrize("sequences", [(1, 1), (2, 1)])
def test_what_is_seen_again_or_out_of_order_is_found(sequences: tuple[int, ...]) -> None:
    (violation,) = seen([*SUBMITTED, *shown(*sequences)])
    assert violation.promise is Promise.ORDER


@pytest.mark.parametrize("events", [shown(4), shown(1, body="other")])
def test_what_nobody_sent_is_found(events: list[Event]) -> None:
    (violation,) = seen([*SUBMITTED, *events])
    assert violation.promise is Promise.INVENTED
