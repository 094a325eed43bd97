"""What a seed means: every kind of fault occurs, each world is healed, and older seeds keep their meaning."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from rvq.sim import State, World, build_world, run_seed
from rvq.sim.workloads import FAULTS, LABEL, LASTING, LATER, VANISHING, Plan, Scene, _people, make_plan

MANY = 400


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return [build_world(seed)[1] for seed in range(MANY)]


def test_every_kind_of_fault_occurs(plans: list[Plan]) -> None:
    assert {kind for plan in plans for _, kind in plan.faults} == {*FAULTS, *LATER, *VANISHING}
    assert {plan.lasting for plan in plans} == {*LASTING, None}


def test_worlds_differ_in_everything(plans: list[Plan]) -> None:
    for name in Plan.__dataclass_fields__:
        assert len({getattr(plan, name) for plan in plans}) > 1, f"{name} is always the same"


def test_most_worlds_are_small_and_short(plans: list[Plan]) -> None:
    assert all(plan.receivers <= 6 and plan.senders <= 3 and plan.faults_s <= 8.0 for plan in plans)
    assert all(0.0 <= when <= plan.faults_s for plan in plans for when, _ in plan.faults)


def test_a_plan_can_be_read(plans: list[Plan]) -> None:
    [text] = {str(plan) for plan in plans[:1]}
    assert "messages" in text and "faults:" in text and "\n" not in text


def test_kinds_that_came_later_do_not_change_what_older_seeds_mean(plans: list[Plan]) -> None:
    for seed in range(50):
        original = make_plan(Random(seed))
        assert set(original.faults) <= set(plans[seed].faults)
        assert all(kind in LATER | VANISHING for _, kind in set(plans[seed].faults) - set(original.faults))


def test_a_world_with_much_to_do_has_time_for_it(plans: list[Plan]) -> None:
    """Seed 40001086: 594 messages of 100 ms, and in the end one receiver."""
    busy = replace(plans[0], senders=3, messages=198, handling_s=0.1, slow_handlers=0.02, failures=0.0)
    assert 75 < busy.work_s < 85
    assert replace(busy, failures=0.5).work_s == pytest.approx(2 * busy.work_s)


def test_names_of_faults_are_not_used_twice() -> None:
    names = [*FAULTS, *LATER, *VANISHING]
    assert len(set(names)) == len(names)


def scene_of_four(seed: int) -> Scene:
    world = World(seed)
    plan = make_plan(Random(seed))
    scene = Scene(world, plan, lambda _message: 0.001)
    for _ in range(4):
        world.receiver(LABEL, handler=scene.handler)
    world.sender(LABEL, messages=150, rate=50.0)
    world.run(until=1.2)
    return scene


@pytest.mark.parametrize("kind", [*FAULTS, *LATER, *VANISHING])
def test_each_fault_alone_breaks_nothing(kind: str) -> None:
    scene = scene_of_four(1)
    (FAULTS | LATER | VANISHING)[kind](scene)
    scene.world.run_planned()
    scene.world.heal()
    _people(scene, None)
    scene.world.settle()
    verdict = scene.world.verdict()
    assert verdict.ok, str(verdict)


@pytest.mark.parametrize("kind", [*FAULTS, *LATER, *VANISHING, *LASTING])
def test_a_fault_in_an_empty_world_does_nothing(kind: str) -> None:
    world = World(2)
    scene = Scene(world, make_plan(Random(2)), lambda _message: None)
    (FAULTS | LATER | VANISHING | LASTING)[kind](scene)
    world.run(until=1.0)
    assert world.verdict().ok


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("seed", range(3))
def test_what_stays_broken_keeps_nobody_from_being_done(kind: str, seed: int) -> None:
    scene = scene_of_four(seed)
    broken = LASTING[kind](scene)
    assert broken is None or broken.alive
    assert scene.world.settle()
    verdict = scene.world.verdict()
    assert verdict.ok, str(verdict)


def test_a_world_is_healed_before_it_is_judged() -> None:
    told: list[str] = []
    assert run_seed(2, verbose=1, out=told.append).ok
    [healed] = [index for index, line in enumerate(told) if "HEALED" in line]
    assert not [line for line in told[healed:] if "PAUSED" in line.split()]


def test_every_group_has_someone_in_the_end() -> None:
    for seed in range(6):
        world, plan = build_world(seed)
        world.run(until=plan.faults_s)
        for receiver in world.live_receivers():
            receiver.crash()
        groups = {receiver.group for receiver in world.receivers}
        _people(Scene(world, plan, lambda _message: 0.0), None)
        assert {receiver.group for receiver in world.live_receivers()} >= groups
        assert all(receiver.state is State.RUNNING for receiver in world.live_receivers())
