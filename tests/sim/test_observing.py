"""Worlds with an observer: at rest its numbers are the account's, it sees who dies and joins, and nobody notices it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rvq.core.stats import Stats
from rvq.sim import Link, ObserverProcess, Plan, Process, World, build_world, workloads
from rvq.sim.history import Ended, Event, Finished, Submitted
from rvq.sim.workloads import LABEL

SEEDS = range(6)
BAD = Link(loss=0.1, duplicate=0.1, reorder=0.1)
SEEN_S = 2.0
"""A kill and a join are to be seen within this."""
REST_S = 3.0
"""After which everyone has said twice how far its counters are."""

RECEIVERS = ("emitted", "acked", "retried", "dead", "expired", "handed_over", "lost", "repaired", "duplicates")
SENDERS = {"inserted": "inserted", "sent": "routed", "acked": "acked", "lost": "lost", "repaired": "repaired"}


def make_world(seed: int, *, link: Link | None = None, keys: int = 0) -> World:
    """Three receivers of one group, a heavy one of another, a recorder, and two senders who go on for three seconds."""
    world = World(seed, link=link)
    for _ in range(3):
        world.receiver(LABEL, handler=fails_now_and_then(seed), attempts=2)
    world.receiver(LABEL, group="other", weight=3)
    world.recorder(LABEL)
    world.sender(LABEL, messages=400, rate=150, burst=5, keys=keys)
    world.sender(LABEL, messages=100, rate=40)
    return world


def fails_now_and_then(seed: int) -> Callable[[Any], float]:
    def handle(message: Any) -> float:
        if (message.sequence + seed) % 50 == 0:
            raise ValueError("on purpose")
        return 0.002

    return handle


def rows(observer: ObserverProcess) -> dict[str, dict[str, Any]]:
    """By name: a process of a world is its own host."""
    found = {}
    for label in observer.snapshot()["labels"]:
        ends = [*label["senders"], *(row for group in label["groups"] for row in group["receivers"])]
        found.update({row["host"]: row for row in ends})
    return found


def assert_agrees(world: World, observer: ObserverProcess, *, but: str = "") -> None:
    """Its picture is exactly the account: everyone who lives, and all that they counted."""
    seen, accounts = rows(observer), world.accounts
    live = {process.name: process for process in world.processes if process.alive and process.name not in (but, "o1")}
    assert {name for name, row in seen.items() if row["state"] != "silent"} - {but} == set(live)
    for name, process in live.items():
        if name in accounts:
            assert {c: seen[name][c] for c in RECEIVERS} == {c: getattr(accounts[name], c) for c in RECEIVERS}, name
            assert seen[name]["backlog"] == 0
        else:
            stats: Stats = process.machine.stats  # type: ignore[union-attr]
            assert {c: seen[name][c] for c in SENDERS} == {c: getattr(stats, of) for c, of in SENDERS.items()}, name
            assert seen[name]["undone"] == 0 and seen[name]["window_used"] == 0
        assert seen[name]["id"] == f"{process.id:016x}"


def at_rest(world: World) -> None:
    """Everything is done; healed, and a little later."""
    world.run_planned()
    world.run(until=max(world.now, 4.0))
    world.heal()
    assert world.settle(), "not done after a minute"
    world.run(until=world.now + REST_S)
    world.verdict().raise_if_bad()


@pytest.mark.parametrize("seed", range(12))
def test_at_rest_its_numbers_are_those_of_the_account(seed: int) -> None:
    """Under loss, a kill, a join and one that leaves; with keys in every second world."""
    world = make_world(seed, keys=5 * (seed % 2))
    world.disturb(BAD)
    observer = world.observer()
    world.at(1.0, world.receivers[0].crash)
    world.at(1.5, lambda: world.receiver(LABEL))
    world.at(2.5, world.receivers[1].leave)
    at_rest(world)
    assert_agrees(world, observer)
    totals = observer.snapshot()["totals"]
    assert totals["inserted"] == totals["sent"] == sum(isinstance(event, Submitted) for event in world.history) == 500
    assert (totals["receivers"], totals["senders"], totals["groups"]) == (4, 2, 3)
    finished = Counter(event.receiver for event in world.history if isinstance(event, Finished))
    seen = rows(observer)
    for receiver in world.receivers:
        if receiver.alive:
            assert seen[receiver.name]["acked"] == finished[receiver.name], "what handlers finished here"
    assert observer.machine.is_complete(observer.local_now)


@pytest.mark.parametrize("seed", range(40))
def test_in_random_worlds_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swarm's, with all their faults, and an observer who is there from the start."""
    made: list[tuple[World, Plan, ObserverProcess]] = []

    def with_observer(seed: int, **options: Any) -> tuple[World, Plan]:
        world, plan = build_world(seed, **options)
        made.append((world, plan, world.observer()))
        return world, plan

    monkeypatch.setattr(workloads, "build_world", with_observer)
    workloads.run_seed(seed).raise_if_bad()
    ((world, plan, observer),) = made
    world.run(until=world.now + REST_S)
    if plan.lasting is None and all(sender.machine.undone == 0 for sender in world.live_senders()):
        assert_agrees(world, observer)
    observer.machine.check_invariants()


# --- what happens is seen soon --------------------------------------------------------------------------------------


def told(observer: ObserverProcess, kind: str) -> list[dict[str, Any]]:
    return [event for event in observer.snapshot()["events"] if event["kind"] == kind]


@pytest.mark.parametrize("link", [Link(), Link(loss=0.05)], ids=["calm", "loss"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_kill_and_a_join_are_seen_within_two_seconds(seed: int, link: Link) -> None:
    world = make_world(seed, link=link)
    observer = world.observer()
    world.run(until=4.0)
    doomed = world.receivers[1]
    doomed.crash()
    assert rows(observer)[doomed.name]["state"] == "in"
    world.run(until=world.now + SEEN_S)
    assert [e for kind in ("silent", "expelled") for e in told(observer, kind) if e["who"] == f"{doomed.id:016x}"]
    assert rows(observer).get(doomed.name, {"state": "silent"})["state"] == "silent"
    joiner = world.receiver(LABEL)
    world.run(until=world.now + SEEN_S)
    assert rows(observer)[joiner.name]["state"] == "in" and rows(observer)[joiner.name]["index"]
    assert f"{joiner.id:016x}" in [event["who"] for event in told(observer, "joined")]
    switch = observer.snapshot()["switches"][-1]
    assert f"{joiner.id:016x}" in switch["slots"] and f"{doomed.id:016x}" not in switch["slots"]


def test_one_who_comes_when_all_is_said_sees_the_whole_picture() -> None:
    world = make_world(3)
    world.run(until=20.0)
    observer = world.observer()
    world.run(until=world.now + 2.5)
    assert observer.machine.is_complete(observer.local_now)
    assert_agrees(world, observer)
    groups = {group["group"]: group for group in observer.snapshot()["labels"][0]["groups"]}
    assert [row["index"] for row in groups["default"]["receivers"]] == [[0], [1], [2]]
    assert groups["other"]["slots"] == 3 and groups["other"]["receivers"][0]["index"] == [0, 1, 2]
    assert groups["journal"]["receivers"][0]["recorder"] is True
    assert all(row["lease_age"] < 1.0 for group in groups.values() for row in group["receivers"])
    assert not observer.snapshot()["events"], "nothing has happened since"


def test_who_inherits_and_who_switches_is_seen() -> None:
    world = make_world(5, link=Link())
    observer = world.observer()
    world.run(until=1.7)
    world.receivers[2].crash()
    world.run(until=5.0)
    heirs = {event["who"] for event in told(observer, "inherited")}
    assert heirs and heirs <= {f"{receiver.id:016x}" for receiver in world.receivers}
    after = [event for event in told(observer, "switched") if " from sequence " in event["text"]]
    stamps = {sender.id: [stamp.at for _, stamp in sender.stamps] for sender in world.senders}
    assert after
    for event in after:
        assert int(event["text"].split(" from sequence ")[1].split()[0]) in stamps[int(event["who"], 16)]


def test_loss_is_seen_where_it_is() -> None:
    world = make_world(2, link=Link())
    observer = world.observer()
    deaf = world.receivers[1]
    world.at(1.2, lambda: world.disturb(Link(loss=0.3), world.senders, [deaf]))
    world.run(until=6.0)
    assert {event["who"] for event in told(observer, "loss")} == {f"{deaf.id:016x}"}


def test_an_observer_of_named_labels_sees_no_others() -> None:
    world = make_world(1)
    world.receiver("other label")
    everything, named = world.observer(), world.observer("other label")
    world.run(until=3.0)
    assert [label["label"] for label in everything.snapshot()["labels"]] == ["other label", LABEL]
    assert [label["label"] for label in named.snapshot()["labels"]] == ["other label"]


# --- nobody notices -------------------------------------------------------------------------------------------------

BEFALLS: dict[str, Callable[[World, Process], object]] = {
    "nothing": lambda world, observer: None,
    "killed": lambda world, observer: observer.crash(),
    "stopped for a while": lambda world, observer: world.pause(observer, 1.5),
    "cut off": lambda world, observer: world.partition([observer], [*world.senders, *world.receivers]),
}


def without_observers(world: World) -> list[Event]:
    names = {observer.name for observer in world.observers}
    return [event for event in world.history if not (isinstance(event, Ended) and event.process in names)]


@pytest.mark.parametrize("befalls", BEFALLS)
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_everything_happens_as_if_it_were_not_there(seed: int, befalls: str) -> None:
    alone, observed = make_world(seed, link=BAD, keys=5), make_world(seed, link=BAD, keys=5)
    observers = [observed.observer() for _ in range(2)]
    observed.at(2.0, lambda: BEFALLS[befalls](observed, observers[0]))
    alone.at(2.0, lambda: None)
    for world in (alone, observed):
        world.at(1.0, world.receivers[0].crash)
        at_rest(world)
    assert without_observers(alone) == without_observers(observed), "to the microsecond"
    assert [sender.stamps for sender in alone.senders] == [sender.stamps for sender in observed.senders]
    assert {name: stats.counters() for name, stats in alone.accounts.items()} == {
        name: stats.counters() for name, stats in observed.accounts.items()
    }
    assert_agrees_of(observed, observers[1])


def assert_agrees_of(world: World, observer: ObserverProcess) -> None:
    seen = rows(observer)
    assert {name: seen[name]["acked"] for name in seen if name in world.accounts} == {
        name: stats.acked
        for name, stats in world.accounts.items()
        if any(process.name == name and process.alive for process in world.processes)
    }
