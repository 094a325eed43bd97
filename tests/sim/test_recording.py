"""A recorder's process: what it takes is gone with it until it is synced, and then it is safe."""

from __future__ import annotations

import pytest

from rvq.sim import World
from rvq.sim.history import Done, Recorded, Recording, Stored, Took
from rvq.wire.frames import FrameType, Stamp


def a_world(seed: int = 1, sync_s: float = 0.01, messages: int = 60) -> World:
    world = World(seed, verbose=1)
    world.recorder("work", sync_s=sync_s)
    world.after(0.5, lambda: world.sender("work", messages=messages, rate=60.0, burst=3))
    return world


def times(world: World, kind: type) -> dict[int, float]:
    return {event.sequence: event.at for event in world.history if type(event) is kind}


def test_a_message_is_taken_then_stored_then_done() -> None:
    world = a_world()
    world.run_planned()
    assert world.settle()
    took, stored, done = (times(world, kind) for kind in (Took, Stored, Done))
    assert took.keys() == stored.keys() == done.keys() == set(range(1, 61))
    assert all(took[q] <= stored[q] < done[q] for q in took)
    assert [q for _, q in world.recorders[0].stored] == list(range(1, 61))
    assert world.verdict().ok
    assert next(iter(world.history)) == Recording(0.0, "j1", "journal")


def test_what_was_not_synced_is_gone_with_its_process() -> None:
    world = a_world(sync_s=0.5)
    world.run_planned()
    world.run(until=1.2)
    recorder = world.recorders[0]
    assert recorder.busy
    lost = times(world, Took).keys() - times(world, Stored).keys()
    world.restart(recorder, after=0.1)
    assert lost
    world.run_planned()
    assert world.settle()
    (first, second) = world.recorders
    assert lost <= {q for _, q in second.stored} and not lost & {q for _, q in first.stored}
    assert second.name == "j1.2"
    world.verdict().raise_if_bad()


def test_one_that_is_paused_says_nothing_meanwhile() -> None:
    world = a_world(messages=10)
    world.run_planned()
    world.run(until=1.0)
    world.recorders[0].pause()
    before = len(times(world, Stored))
    world.run(until=1.5)
    assert len(times(world, Stored)) == before
    world.recorders[0].resume()
    assert world.settle()
    world.verdict().raise_if_bad()


def test_one_that_leaves_stores_what_it_has_first() -> None:
    world = a_world(sync_s=0.1)
    world.recorder("work", sync_s=0.1)
    world.run_planned()
    world.run(until=1.5)
    world.recorders[0].leave()
    assert world.settle()
    assert not world.recorders[0].alive and world.live_recorders() == [world.recorders[1]]
    assert world.live_recorders("other") == []
    verdict = world.verdict()
    assert verdict.ok and verdict.repeats == 0


def test_what_was_said_is_on_its_disk_too() -> None:
    world = a_world()
    world.receiver("work")
    world.run_planned()
    world.settle()
    said = [event for event in world.history if type(event) is Recorded]
    assert {event.who for event in said} == {"s1", "r1", "j1"} - {"j1"}
    stamps = [event.frame.number for event in said if isinstance(event.frame, Stamp)]
    assert stamps == list(range(1, len(stamps) + 1)) and stamps


def test_a_world_with_recorders_comes_out_the_same_again() -> None:
    worlds = [a_world(7) for _ in range(2)]
    for world in worlds:
        world.run_planned()
        world.settle()
    assert worlds[0].history.digest() == worlds[1].history.digest()


@pytest.mark.parametrize("kind", [FrameType.DATA, FrameType.REPORT])
def test_a_recorder_is_repaired_and_heard_like_any_receiver(kind: FrameType) -> None:
    world = a_world()
    world.run_planned()
    recorder = world.recorders[0]
    world.cut(world.senders, recorder, 0.3, kinds=[kind])
    world.cut(recorder, world.senders, 0.3, kinds=[kind])
    world.run_planned()
    assert world.settle()
    world.verdict().raise_if_bad()
