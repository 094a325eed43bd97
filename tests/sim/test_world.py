"""Worlds as a user meets them: a handler and faults of their choosing, a verdict, and the same again from a seed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

import rvq.sim
from rvq.errors import RvqError
from rvq.sim import Link, Promise, PromiseBroken, State, World
from rvq.sim.history import Done, Finished, Started
from rvq.sim.machines import Build
from rvq.sim.mutants import build_named
from rvq.wire.frames import FrameType

# --- as a user would ----------------------------------------------------------------------------------------------


class Shop:
    """A user's code: counts stock, and remembers which orders it has seen."""

    def __init__(self, *, careful: bool = True) -> None:
        self.careful = careful
        self.sold: Counter[int] = Counter()

    def handle(self, message: Any) -> float:
        order = message.body["order"]
        if not self.careful or order not in self.sold:
            self.sold[order] += 1
        return 0.02


def test_a_users_handler_is_called_for_everything_though_a_receiver_dies() -> None:
    world = rvq.sim.World(seed=1)
    shop = Shop()
    world.sender("orders", bodies=[{"order": n} for n in range(100)], rate=50)
    alice = world.receiver("orders", handler=shop.handle)
    world.receiver("orders", handler=shop.handle)
    world.at(1.0, alice.crash)
    world.run()
    world.verdict().raise_if_bad()
    assert shop.sold == Counter(range(100))


def test_a_handler_that_is_not_ready_for_repeats_is_found() -> None:
    worst = 0
    for seed in range(10):
        world = rvq.sim.World(seed)
        shop = Shop(careful=False)
        world.sender("orders", bodies=[{"order": n} for n in range(100)], rate=50)
        alice = world.receiver("orders", handler=shop.handle)
        world.receiver("orders", handler=shop.handle)
        world.at(1.0, alice.crash)
        world.run()
        assert world.verdict().ok
        worst = max(worst, *shop.sold.values())
    assert worst == 2, "the message at work in the crash is handled again: exactly once needs the user, or the ledger"


def test_a_handler_that_raises_is_tried_again_until_it_does_not() -> None:
    world = World(2)
    tries: Counter[str] = Counter()

    def handle(message: Any) -> None:
        tries[message.body] += 1
        if tries[message.body] < 3:
            raise ValueError("not yet")

    world.receiver("work", handler=handle, retry_s=0.1)
    world.sender("work", bodies=["a", "b"])
    world.run()
    world.verdict().raise_if_bad()
    assert tries == {"a": 3, "b": 3}


def test_the_example_of_the_module_runs() -> None:
    assert World.__module__ == "rvq.sim.world"
    words = sys.modules["rvq.sim.world"].__doc__ or ""
    example = "\n".join(line[4:] for line in words.splitlines() if line.startswith("    "))
    handled: list[Any] = []
    names: dict[str, Any] = {"my_function": lambda message: handled.append(message.body)}
    exec(example, names)
    assert sorted(body["job"] for body in handled)[:100] and {body["job"] for body in handled} == set(range(100))


def test_everything_public_is_there() -> None:
    assert all(hasattr(rvq.sim, name) for name in rvq.sim.__all__)
    assert issubclass(PromiseBroken, RvqError) and issubclass(PromiseBroken, AssertionError)


# --- verdicts -----------------------------------------------------------------------------------------------------


def test_a_world_without_receivers_loses_nothing_but_is_not_settled() -> None:
    world = World(3)
    sender = world.sender("work", messages=5)
    assert not world.settle(3.0)
    assert sender.machine.waiting_for and "nobody listens" in sender.machine.waiting_for
    assert not world.verdict().ok, "what was submitted is nobody's: lost, if this is the end"
    assert world.verdict(converged=False).ok, "but not if it is only stopped midway"


def test_a_broken_promise_raises_with_the_verdict() -> None:
    world = World(4, build=build_named("no-reports"))
    world.sender("work", messages=5)
    world.receiver("work")
    world.settle(5.0)
    with pytest.raises(PromiseBroken, match="5 messages") as raised:
        world.verdict().raise_if_bad()
    assert {violation.promise for violation in raised.value.verdict.violations} == {Promise.LOST}


def test_a_machine_that_raises_is_in_the_verdict() -> None:
    def broken(*_args: Any, **_options: Any) -> Any:
        machine = Build().receiver(*_args, **_options)
        machine.check_invariants = lambda: 1 / 0  # type: ignore[method-assign]
        return machine

    world = World(5, build=Build(receiver=broken))
    world.receiver("work")
    world.run(until=1.0)
    [violation] = world.verdict().violations
    assert violation.promise is Promise.BROKEN and "ZeroDivisionError" in violation.text


# --- building -----------------------------------------------------------------------------------------------------


def test_names_and_ids_are_given_out_and_kept_apart() -> None:
    world = World(6)
    one, two = world.receiver("work"), world.receiver("work", name="r1")
    assert (one.name, two.name) == ("r1", "r1.2")
    assert one.id != two.id
    assert [receiver.id for receiver in world.live_receivers()] == sorted([one.id, two.id])


def test_keys_are_many_or_one_for_each_message() -> None:
    world = World(7)
    world.receiver("work")
    world.sender("work", bodies=[1, 2, 3, 4], keys=["x", None], rate=1000)
    world.sender("work", messages=40, keys=3, rate=1000)
    world.run()
    keys = [(start.stream == world.senders[0].id, start.key) for start in world.history if type(start) is Started]
    assert Counter(key for first, key in keys if first) == {"x": 2, None: 2}
    assert {key for first, key in keys if not first} == {"key-0", "key-1", "key-2"}


def test_a_rate_is_kept_on_average_also_in_bursts() -> None:
    for burst in (1, 10):
        world = World(8)
        world.receiver("work")
        sender = world.sender("work", messages=200, rate=100, burst=burst)
        world.run(until=1.0)
        assert 60 <= sender.submitted <= 140


def test_groups_each_get_everything_and_labels_nothing_of_each_other() -> None:
    world = World(9)
    for group in ("default", "default", "audit"):
        world.receiver("work", group=group)
    other = world.receiver("other")
    world.run(until=1.0)
    world.sender("work", messages=30)
    world.run()
    world.verdict().raise_if_bad()
    starts = [start for start in world.history if type(start) is Started]
    assert Counter(start.group for start in starts) == {"default": 30, "audit": 30}
    assert not [start for start in starts if start.receiver == other.name]


# --- running ------------------------------------------------------------------------------------------------------


def test_actions_happen_at_their_times_and_a_world_waits_for_them() -> None:
    world = World(10)
    times: list[float] = []
    world.at(2.0, lambda: times.append(world.now))
    world.after(0.5, lambda: times.append(world.now))
    assert not world.settled
    world.run()
    assert times == [0.5, 2.0] and world.settled
    with pytest.raises(ValueError, match="in the past"):
        world.at(1.0, lambda: None)


def test_run_planned_waits_for_actions_only() -> None:
    world = World(11)
    world.sender("work", messages=5)
    world.after(1.0, lambda: world.after(1.0, lambda: None))
    world.run_planned()
    assert 2.0 <= world.now <= 2.1


# --- faults -------------------------------------------------------------------------------------------------------


def two_and_a_sender(seed: int, **options: Any) -> World:
    world = World(seed, **options)
    world.receiver("work")
    world.receiver("work")
    world.sender("work", messages=200, rate=50)
    world.run(until=1.5)
    return world


def test_a_restarted_process_has_a_new_id_and_a_sender_goes_on_with_the_rest() -> None:
    world = two_and_a_sender(12)
    [sender], receiver = world.senders, world.receivers[0]
    submitted = sender.submitted
    world.restart(receiver)
    world.restart(sender, after=0.5)
    world.run()
    world.verdict().raise_if_bad()
    assert [r.name for r in world.receivers] == ["r1", "r2", "r1.2"]
    assert world.receivers[2].id != receiver.id
    assert world.senders[1].submitted == 200 - submitted


def test_a_cut_is_one_way_and_ends() -> None:
    world = two_and_a_sender(13)
    [sender], [deaf, _] = world.senders, world.receivers
    world.cut(sender, deaf, for_s=3.0)
    before = deaf.machine.streams[sender.id].counter
    heard = sender.machine._audience.ears[deaf.id].counter
    world.run(until=4.0)
    assert deaf.machine.streams[sender.id].counter <= before + 1
    assert sender.machine._audience.ears[deaf.id].counter > heard + 5, "the way back is open"
    world.run()
    world.verdict().raise_if_bad()


def test_a_cut_can_be_of_some_frames_only() -> None:
    world = two_and_a_sender(14)
    [sender], [victim, _] = world.senders, world.receivers
    world.cut(sender, victim, for_s=1.0, kinds=[FrameType.DATA])
    taken = victim.machine.streams[sender.id].intake.taken
    counter = victim.machine.streams[sender.id].counter
    world.run(until=2.4)
    assert victim.machine.streams[sender.id].counter > counter + 2
    assert victim.machine.stats.repaired == 0 and taken
    world.run()
    world.verdict().raise_if_bad()


def test_partition_and_clog_end_by_themselves_or_with_heal() -> None:
    world = two_and_a_sender(15)
    everyone = world.processes
    world.partition(everyone[:1], everyone[1:])
    world.clog(everyone[1], everyone[2])
    world.disturb(Link(loss=0.5))
    world.disturb(Link(loss=0.9), everyone[0])
    everyone[2].pause()
    world.run(until=3.0)
    world.heal()
    assert world.network.link == world.network.plain_link
    assert all(process.state is State.RUNNING for process in everyone)
    world.run()
    world.verdict().raise_if_bad()


def test_a_pause_ends_by_itself() -> None:
    world = two_and_a_sender(16)
    world.pause(world.receivers[0], 2.0)
    assert world.receivers[0].state is State.PAUSED
    world.run(until=4.0)
    assert world.receivers[0].state is State.RUNNING


def test_a_paused_receiver_counts_as_a_rival_for_as_long_as_its_lease() -> None:
    world = two_and_a_sender(17)
    [sender], [stopped, _] = world.senders, world.receivers
    stopped.pause()
    world.run(until=world.now + 1.2)
    assert not stopped.machine.may_start(stopped.local_now, sender.id, sender.submitted)


# --- the same again -----------------------------------------------------------------------------------------------

DIGEST = "from rvq.sim import build_world\nw, _ = build_world({seed})\nw.run(until=4.0)\nprint(w.history.digest())"


def digest(seed: int) -> str:
    world, _ = rvq.sim.build_world(seed)
    world.run(until=4.0)
    assert len(world.history) > 50
    return world.history.digest()


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_the_same_seed_gives_the_same_history(seed: int) -> None:
    assert digest(seed) == digest(seed) != digest(seed + 1)


@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_the_same_seed_gives_the_same_history_in_another_interpreter(hash_seed: str) -> None:
    other = subprocess.run(
        [sys.executable, "-c", DIGEST.format(seed=5)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert other.stdout.strip() == digest(5)


def test_telling_the_story_changes_nothing() -> None:
    plain, told = World(18), World(18, verbose=2)
    for world in (plain, told):
        world.receiver("work")
        world.sender("work", messages=20)
        world.run()
    assert plain.history.digest() == told.history.digest()
    assert not plain.story.lines and told.story.lines


def test_everything_handled_is_in_the_history() -> None:
    world = two_and_a_sender(19)
    world.run()
    kinds = Counter(type(event) for event in world.history)
    assert kinds[Started] == kinds[Finished] == kinds[Done] == 200


# --- leavers ------------------------------------------------------------------------------------------------------


def test_one_that_was_told_to_leave_and_is_still_there_is_found() -> None:
    world = World(1)
    sender = world.sender("work", messages=5)
    staying, leaver = world.receiver("work"), world.receiver("work", handler=lambda message: 1000.0)
    world.run(until=2.0)
    leaver.leave()
    world.run(until=4.0)
    (left,) = [broken for broken in world.verdict().violations if broken.promise is Promise.LEFT]
    assert left.text.startswith(f"{leaver.name} was told to leave, and is still there and waits for messages that")
    assert f"sender {sender.id:016x}" in left.text and staying.name not in left.text
    midway = world.verdict(converged=False).violations
    assert not [broken for broken in midway if broken.promise is Promise.LEFT], "it may still leave"
