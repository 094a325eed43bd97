"""Proof that the checks can fail: with any one rule of the protocol switched off, a promise is broken and that is seen.

Each mutant has seeds at which the swarm found it. A change of the machines can change what a seed leads to: then look
for others with `python -m rvq.sim --mutant NAME --seeds 3000 --stop-after 3`. Those that the swarm finds only now and
then have a schedule too, made for them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rvq.core.receiver import ReceiverMachine
from rvq.core.recorder import RecorderMachine
from rvq.core.sealing import SealingMachine
from rvq.core.sender import SenderMachine
from rvq.sim import Promise, Verdict
from rvq.sim.machines import PRODUCT, SEALED
from rvq.sim.mutants import MUTANTS, build_named
from rvq.sim.workloads import run_seed
from rvq.wire.frames import FrameType
from tests.sim.stage import Stage
from tests.sim.test_handing_over import a_backlog, moves

FOUND_AT: dict[str, tuple[int, ...]] = {
    "answers-at-once": (354, 450),
    "believes-any-address": (2,),
    "echo-without-stamps": (263,),
    "hands-over-without-stopping": (12, 17),
    "heir-does-not-ask": (12, 17),
    "joiners-ignore-open-stamps": (0, 8, 10),
    "keys-do-not-wait": (0, 1, 5),
    "lease-from-echo": (14, 17),
    "no-challenge": (0, 1, 2),
    "no-lease": (0, 20, 29),
    "no-lease-wait": (0, 297, 20),
    "no-repair": (0, 1, 2),
    "no-replay-window": (0, 1, 2),
    "no-reports": (0, 1, 2),
    "no-stamps": (2, 6),
    "no-strikes": (22, 68),
    "one-way": (66, 68, 100),
    "orphan-alone": (21, 102, 106),
    "orphan-on-a-stale-word": (350,),
    "pause-not-merged": (8, 58),
    "recorder-acknowledges-before-stored": (3, 10, 18),
    "reports-open-ones": (0, 1, 2),
    "tells-others-deeds": (18, 49, 69),
}
"""Seeds in which each mutant broke a promise that it should break, the first that were found from 0 on."""


def breaks(mutant: str, verdict: Verdict) -> bool:
    return bool({violation.promise for violation in verdict.violations} & set(MUTANTS[mutant].breaks))


def test_every_mutant_has_seeds() -> None:
    assert FOUND_AT.keys() == MUTANTS.keys()
    assert all(FOUND_AT.values())


@pytest.mark.parametrize("mutant", [name for name, seeds in FOUND_AT.items() if len(seeds) > 1])
def test_the_swarm_finds_that_a_rule_is_missing(mutant: str) -> None:
    build = build_named(mutant)
    found = any(breaks(mutant, run_seed(seed, build=build)) for seed in FOUND_AT[mutant])
    assert found, f"{MUTANTS[mutant].why}: not seen any more at {FOUND_AT[mutant]}"


@pytest.mark.parametrize("seed", sorted({seed for seeds in FOUND_AT.values() for seed in seeds}))
def test_with_all_rules_the_same_worlds_keep_every_promise(seed: int) -> None:
    verdict = run_seed(seed)
    assert verdict.ok, str(verdict)


# --- schedules made for one rule ----------------------------------------------------------------------------------


def a_stage(mutant: str | None, names: str = "abc") -> Stage:
    """Everyone has work for several seconds in hand, so that it matters who may start it."""
    return Stage(1, names=names, rate=450.0, messages=900, handler=lambda _message: 0.05, mutant=mutant)


def judged(stage: Stage) -> Verdict:
    stage.world.heal()
    stage.world.settle()
    stage.run(1.0)
    return stage.world.verdict()


def struck_out_without_hearing_of_it(mutant: str | None) -> Verdict:
    """Let in again, b is echoed; by its old stamps it still owns what it owned."""
    stage = a_stage(mutant)
    fault = stage.world.partition([stage["b"]], [stage.s])
    stage.world.cut(stage.others("b"), stage["b"], kinds=[FrameType.STAMP])
    stage.run_until(lambda: "b" not in stage.in_force(), timeout=2.0)
    fault.end()
    stage.run(3.0)
    return judged(stage)


def echoes_that_come_late(mutant: str | None) -> Verdict:
    """What the sender said to b is held on the way, and comes when b is struck out; but not the stamp."""
    stage = a_stage(mutant)
    stage.world.cut(stage.others("b"), stage["b"], kinds=[FrameType.STAMP])
    fault = stage.world.clog(stage.s, stage["b"])
    stage.run_until(lambda: "b" not in stage.in_force(), timeout=4.0)
    stage.run(1.3)
    stage.world.cut(stage.s, stage["b"])
    fault.end()
    stage.run(2.0)
    return judged(stage)


def deaf_to_the_sender_only(mutant: str | None) -> Verdict:
    stage = a_stage(mutant)
    stage.world.cut(stage.s, stage["b"])
    stage.run(6.0)
    return judged(stage)


def all_lose_the_sender_and_one_does_not_find_it_again(mutant: str | None) -> Verdict:
    """All take the stream for orphaned; b and c hear of the sender again, and inherit from a, which does not."""
    stage = a_stage(mutant)
    fault = stage.world.partition([stage.s], [stage["b"], stage["c"]])
    stage.world.partition([stage.s], [stage["a"]])
    stage.run(0.9)
    fault.end()
    stage.run(6.0)
    return judged(stage)


def silent_one_after_the_other(mutant: str | None) -> Verdict:
    stage = a_stage(mutant, "ab")
    stage.world.cut(stage.s, stage["b"], for_s=0.85)
    stage.run(2.5)
    stage.world.cut(stage.s, stage["a"])
    stage.run(6.0)
    return judged(stage)


def deaf_to_the_sender_for_good(mutant: str | None) -> Verdict:
    stage = a_stage(mutant)
    stage.world.cut(stage.s, stage["b"])
    stage.world.settle(30.0)
    return stage.world.verdict()


def the_giver_does_not_hear_of_the_stamp(mutant: str | None) -> Verdict:
    """a hands over to b, and the stamp does not come to a: by then it must have stopped."""
    stage = a_backlog(1, mutant=mutant)
    stage.world.cut(stage.s, stage["a"], kinds=[FrameType.STAMP])
    stage.run_until(lambda: bool(moves(stage)), timeout=2.0)
    stage.run(0.5)
    return judged(stage)


SCHEDULES: dict[str, Callable[[str | None], Verdict]] = {
    "echo-without-stamps": struck_out_without_hearing_of_it,
    "lease-from-echo": echoes_that_come_late,
    "no-lease": deaf_to_the_sender_only,
    "orphan-alone": deaf_to_the_sender_only,
    "answers-at-once": all_lose_the_sender_and_one_does_not_find_it_again,
    "no-lease-wait": all_lose_the_sender_and_one_does_not_find_it_again,
    "orphan-on-a-stale-word": silent_one_after_the_other,
    "hands-over-without-stopping": the_giver_does_not_hear_of_the_stamp,
    "no-strikes": deaf_to_the_sender_for_good,
    "one-way": deaf_to_the_sender_for_good,
}


@pytest.mark.parametrize("mutant", SCHEDULES)
def test_a_schedule_shows_what_the_rule_is_for(mutant: str) -> None:
    verdict = SCHEDULES[mutant](mutant)
    assert breaks(mutant, verdict), f"{MUTANTS[mutant].why}\n{verdict}"


@pytest.mark.parametrize("schedule", dict.fromkeys(SCHEDULES.values()))
def test_with_all_rules_the_same_schedules_keep_every_promise(schedule: Callable[[str | None], Verdict]) -> None:
    verdict = schedule(None)
    assert verdict.ok, str(verdict)


# --- mutants themselves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_says_what_it_leaves_out_and_is_not_the_product(name: str) -> None:
    mutant = MUTANTS[name]
    assert mutant.why and mutant.breaks and Promise.BROKEN not in mutant.breaks
    assert build_named(name) != PRODUCT
    assert issubclass(mutant.sender, SenderMachine) and issubclass(mutant.receiver, ReceiverMachine)
    assert issubclass(mutant.recorder, RecorderMachine)


def test_the_product_has_no_mutant_in_it() -> None:
    assert build_named(None) is PRODUCT
    assert (PRODUCT.sender, PRODUCT.receiver) == (SenderMachine, ReceiverMachine)
    assert PRODUCT.recorder is RecorderMachine


def test_the_seals_mutants_are_on_a_sealed_bus_and_others_if_they_are_told_to() -> None:
    sealing = {name for name in MUTANTS if build_named(name).sealing is not None}
    assert sealing == {"no-challenge", "no-replay-window"}
    assert build_named(None, sealed=True) is SEALED and SEALED.sealing is SealingMachine
    assert build_named("no-lease", sealed=True).sealing is SealingMachine
    assert build_named("no-challenge", sealed=True) == build_named("no-challenge")


@pytest.mark.parametrize("name", ["no-challenge", "no-replay-window"])
def test_with_all_rules_of_the_seal_the_same_worlds_keep_every_promise(name: str) -> None:
    for seed in FOUND_AT[name]:
        verdict = run_seed(seed, build=SEALED)
        assert verdict.ok, str(verdict)


def test_a_mutant_in_one_world_leaves_the_next_as_it_is() -> None:
    before = run_seed(3).started
    run_seed(3, build=build_named("no-lease"))
    assert run_seed(3).started == before
