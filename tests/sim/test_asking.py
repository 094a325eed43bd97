"""Orders in simulated worlds: a pause through joins, deaths and loss; shares that change; receivers told to leave."""

from __future__ import annotations

from rvq.sim import Link, World
from rvq.sim.history import Started
from rvq.sim.process import State
from rvq.wire.frames import OrderKind

LABEL = "work"


def a_world(seed: int = 1, receivers: int = 3, link: Link | None = None, keys: int = 0) -> World:
    world = World(seed, verbose=1, link=link)
    for _ in range(receivers):
        world.receiver(LABEL)
    world.run(until=1.0)
    world.sender(LABEL, messages=400, rate=100.0, keys=keys)
    world.run(until=2.0)
    return world


def starts(world: World, since: float, until: float) -> list[Started]:
    return [event for event in world.history if isinstance(event, Started) and since < event.at <= until]


def ordered(world: World, what: OrderKind, whom: str, value: int = 0) -> float:
    """When everybody had confirmed it."""
    asker = world.order(LABEL, what, whom, value)
    while asker.state is State.RUNNING:
        world.run(until=world.now + 0.05)
    assert asker.asker.fault is None
    return world.now


def test_a_confirmed_pause_holds_through_joins_and_deaths_and_nothing_is_lost() -> None:
    for seed, link, keys in ((1, None, 0), (2, Link(loss=0.1), 5)):
        world = a_world(seed, link=link, keys=keys)
        paused_at = ordered(world, OrderKind.PAUSE, "default")
        world.receivers[0].crash()
        world.after(0.3, lambda world=world: world.receiver(LABEL))
        world.after(0.6, world.receivers[1].leave)
        world.run(until=paused_at + 3.0)
        assert world.receivers[-1].machine.paused  # type: ignore[attr-defined]
        assert not starts(world, paused_at, world.now)
        ordered(world, OrderKind.RESUME, "default")
        assert world.settle()
        world.run(until=world.now + 1.0)
        assert world.verdict().ok, str(world.verdict())


def test_one_who_was_stopped_all_through_the_end_of_a_pause_learns_of_it() -> None:
    world = a_world()
    ordered(world, OrderKind.PAUSE, "default")
    world.pause(world.receivers[0], 6.0)
    world.run(until=world.now + 2.0)
    ordered(world, OrderKind.RESUME, "default")
    world.run_planned()
    assert world.settle()
    assert not any(receiver.machine.paused for receiver in world.receivers)  # type: ignore[attr-defined]
    assert world.verdict().ok


def test_another_weight_is_another_share() -> None:
    world = a_world()
    one = world.receivers[0]
    since = ordered(world, OrderKind.WEIGHT, f"{one.id:016x}", 4) + 0.5
    assert world.settle()
    late = starts(world, since, world.now)
    mine = sum(start.receiver == one.name for start in late)
    assert abs(mine / len(late) - 4 / 6) < 0.05
    assert world.verdict().ok


def test_a_drained_receiver_ends_and_everything_is_done() -> None:
    world = a_world()
    one = world.receivers[0]
    ordered(world, OrderKind.DRAIN, f"{one.id:016x}")
    assert world.settle()
    assert one.state is State.ENDED
    assert world.verdict().ok


def test_a_world_with_orders_is_the_same_each_time_and_says_who_ordered_what() -> None:
    def told() -> list[str]:
        world = a_world(3)
        ordered(world, OrderKind.PAUSE, "default")
        return [line for line in world.story.lines if "o1" in line]

    lines = told()
    assert lines == told()
    assert any("asks 'work': PAUSE default" in line for line in lines)
    assert any("3 have done as asked" in line for line in lines)
