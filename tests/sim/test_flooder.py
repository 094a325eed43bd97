"""A stranger on a plain bus: whatever he says from his own place, the others lose nothing and repeat nothing."""

from __future__ import annotations

import pytest

from rvq.sim import Promise, World
from rvq.sim.flooder import ALL
from rvq.sim.mutants import build_named
from rvq.sim.workloads import run_seed

FLOOD_S = 3.0


def flooded(kind: str | None, mutant: str | None = None, seed: int = 1) -> tuple[World, int]:
    world = World(seed, build=build_named(mutant))
    flooder = world.flooder("work", FLOOD_S, {kind} if kind else ())
    for _ in range(2):
        world.receiver("work")
    world.sender("work", messages=100, rate=50.0)
    world.run(until=FLOOD_S)
    world.heal()
    world.settle(60.0)
    return world, flooder.said


@pytest.mark.parametrize("kind", sorted(ALL))
def test_each_kind_of_flood_alone_changes_nothing(kind: str) -> None:
    world, said = flooded(kind)
    verdict = world.verdict()
    assert verdict.ok, str(verdict)
    assert said > 100 and verdict.finished >= 100


def test_one_who_hears_their_names_cannot_say_what_is_done_in_them() -> None:
    world, _ = flooded("done", "believes-any-address")
    assert Promise.LOST in {violation.promise for violation in world.verdict().violations}


def test_what_he_says_is_refused_and_counted() -> None:
    world, _ = flooded("impostors")
    assert all(stats.refused > 10 for stats in world.accounts.values())


@pytest.mark.parametrize("seed", [1, 3])
def test_random_worlds_with_a_stranger_that_once_broke_a_promise_keep_it(seed: int) -> None:
    """1: he claimed a pause so new that whoever orders could say nothing newer. 3: a table of his had receivers of
    another group in it, who were heard, and so its lanes were theirs for ever."""
    verdict = run_seed(seed, build=build_named(None, flooded=True))
    assert verdict.ok, str(verdict)
