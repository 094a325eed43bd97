"""Proof that the checks can fail: with any one rule of the protocol switched off, the swarm finds a broken promise."""

from __future__ import annotations

import pytest

from rvq.core.receiver import ReceiverMachine
from rvq.core.sender import SenderMachine
from rvq.sim.checkers import Promise
from rvq.sim.machines import PRODUCT
from rvq.sim.mutants import MUTANTS, build_named
from rvq.sim.workloads import run_seed

FOUND_AT: dict[str, tuple[int, ...]] = {
    "answers-at-once": (250, 354),
    "echo-without-stamps": (),
    "heir-does-not-ask": (0, 8),
    "joiners-ignore-open-stamps": (0, 8),
    "keys-do-not-wait": (0, 5),
    "lease-from-echo": (49, 85),
    "no-lease": (14, 20),
    "no-lease-wait": (20, 26),
    "no-repair": (0, 1),
    "no-reports": (0, 1),
    "no-stamps": (0, 2),
    "no-strikes": (),
    "one-way": (),
    "orphan-alone": (49, 109),
    "reports-open-ones": (0, 1),
}
"""The first seeds from 0 on in which each mutant breaks a promise that it should break."""


def test_every_mutant_has_seeds() -> None:
    assert FOUND_AT.keys() == MUTANTS.keys()
    assert all(FOUND_AT.values())


@pytest.mark.parametrize(("mutant", "seed"), [(name, seed) for name, seeds in FOUND_AT.items() for seed in seeds])
def test_a_missing_rule_breaks_a_promise(mutant: str, seed: int) -> None:
    verdict = run_seed(seed, build=build_named(mutant))
    broken = {violation.promise for violation in verdict.violations}
    assert broken & set(MUTANTS[mutant].breaks), f"{MUTANTS[mutant].why}: seed {seed} no longer shows it"


@pytest.mark.parametrize("seed", sorted({seed for seeds in FOUND_AT.values() for seed in seeds}))
def test_with_all_rules_the_same_worlds_keep_every_promise(seed: int) -> None:
    verdict = run_seed(seed)
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_mutant_says_what_it_leaves_out_and_is_not_the_product(name: str) -> None:
    mutant = MUTANTS[name]
    assert mutant.why and mutant.breaks and Promise.BROKEN not in mutant.breaks
    assert build_named(name) != PRODUCT
    assert issubclass(mutant.sender, SenderMachine) and issubclass(mutant.receiver, ReceiverMachine)


def test_the_product_has_no_mutant_in_it() -> None:
    assert build_named(None) is PRODUCT
    assert (PRODUCT.sender, PRODUCT.receiver) == (SenderMachine, ReceiverMachine)


def test_a_mutant_in_one_world_leaves_the_next_as_it_is() -> None:
    before = run_seed(3).started
    run_seed(3, build=build_named("no-lease"))
    assert run_seed(3).started == before
