"""Handing over: who has nothing to do gets half of what waits at another, and still every message is started once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rvq.sim.network import Fault
from rvq.wire.codec import encode_control
from rvq.wire.frames import FrameType, Moved, label_tag
from tests.sim.stage import LABEL, Stage

seeds = pytest.mark.parametrize("seed", (1, 4))
MESSAGES = 240


def slow(_message: Any) -> float:
    return 0.1


def quick(_message: Any) -> float:
    return 0.002


def a_backlog(
    seed: int,
    names: str = "ab",
    *,
    hand_over: bool = True,
    slow_ones: str = "a",
    handler: Any = slow,
    mutant: str | None = None,
) -> Stage:
    """All is sent within a second: `b` is soon done with its own, and `a` has work for ten seconds more."""
    stage = Stage(seed, names="", messages=0, handler=quick, mutant=mutant, options={"hand_over": hand_over})
    for name in names:
        stage.join(name, **({"handler": handler} if name in slow_ones else {}))
    stage.run(1.5)
    stage.s = stage.sender("t", messages=MESSAGES, rate=MESSAGES / 0.4)
    stage.run_until(lambda: len(stage.submitted()) == MESSAGES, timeout=8.0)
    stage.t0 = stage.world.now
    assert stage.switches()[0][2] == set(names), "everyone was in from the start"
    return stage


def moves(stage: Stage) -> list[tuple[float, Moved]]:
    """What was stamped as another's, and when."""
    return [(at, moved) for at, stamp in stage.s.stamps for entry in stamp.groups for moved in entry.moved]


def fenced(stage: Stage, name: str = "a") -> bool:
    """Has it stopped before something that it gives away?"""
    return any(lane.fence is not None for s in stage[name].machine.streams.values() for lane in s.lanes.values())


def stats(stage: Stage, name: str) -> Any:
    return stage[name].machine.stats


def expect_once(stage: Stage, *, repeats: int = 0) -> None:
    stage.end()
    started = Counter(start.sequence for start in stage.starts())
    assert started.keys() == set(range(1, MESSAGES + 1))
    assert sum(started.values()) <= MESSAGES + repeats
    assert not any(fenced(stage, receiver.name) for receiver in stage.world.live_receivers()), "no fence is left"


@seeds
def test_the_backlog_of_a_slow_receiver_is_shared_and_every_message_started_once(seed: int) -> None:
    stage = a_backlog(seed)
    own = len(stage.handled_by("b"))
    expect_once(stage)
    assert len(moves(stage)) >= 3, "half of what waits, and again half of that"
    assert len(stage.handled_by("b")) > own + MESSAGES // 4
    assert stage.world.now - stage.t0 < 0.6 * MESSAGES / 2 * 0.1, "sooner than the slow one alone"


@seeds
def test_what_was_handed_over_is_counted_exactly(seed: int) -> None:
    stage = a_backlog(seed)
    expect_once(stage)
    a, b = stats(stage, "a"), stats(stage, "b")
    assert a.handed_over > 0
    assert a.routed - a.handed_over == a.emitted == a.acked == len(stage.handled_by("a"))
    assert b.routed - b.handed_over == b.emitted == len(stage.handled_by("b"))
    assert a.routed + b.routed - a.handed_over - b.handed_over == MESSAGES


def test_what_is_handed_over_was_never_started_and_is_no_redelivery() -> None:
    stage = a_backlog(1)
    expect_once(stage)
    assert all(start.asked_at is None for start in stage.starts("b"))


def test_unless_it_is_told_to_a_receiver_hands_nothing_over() -> None:
    stage = a_backlog(1, hand_over=False)
    expect_once(stage)
    assert not moves(stage) and stats(stage, "a").handed_over == 0
    assert len(stage.handled_by("a")) > MESSAGES // 3


def test_nothing_is_handed_over_while_all_have_work() -> None:
    stage = a_backlog(1, slow_ones="ab")
    stage.run(3.0)
    assert not moves(stage)
    expect_once(stage)


@seeds
def test_a_giver_that_dies_before_the_stamp_leaves_all_of_it_to_its_heir(seed: int) -> None:
    stage = a_backlog(seed, "abc")
    stage.world.cut(stage["a"], stage.s, kinds=[FrameType.HAND_OVER])
    stage.run_until(lambda: fenced(stage), timeout=2.0)
    stage["a"].crash()
    expect_once(stage, repeats=1)
    assert not moves(stage)


@seeds
def test_a_giver_that_dies_after_the_stamp_leaves_what_it_kept(seed: int) -> None:
    stage = a_backlog(seed, "abc")
    stage.run_until(lambda: bool(moves(stage)), timeout=2.0)
    stage["a"].crash()
    expect_once(stage, repeats=1)


@seeds
def test_what_a_taker_had_not_done_when_it_died_is_taken_over(seed: int) -> None:
    stage = a_backlog(seed, "abc")
    at = stage.run_until(lambda: bool(moves(stage)), timeout=2.0)
    taker = stage.names([moves(stage)[0][1].to]).pop()
    stage.run_until(lambda: bool(stage.starts(taker, since=at)), timeout=1.0)
    stage[taker].crash()
    expect_once(stage, repeats=12)


@seeds
def test_a_paused_sender_stamps_when_it_is_back(seed: int) -> None:
    stage = a_backlog(seed)
    stage.run(0.3)
    before = len(moves(stage))
    stage.s.pause()
    stage.run(0.6)
    stage.s.resume()
    stage.run_until(lambda: len(moves(stage)) > before, timeout=2.0)
    expect_once(stage)


def lose_the_request(stage: Stage) -> Fault:
    return stage.world.cut(stage["a"], stage.s, kinds=[FrameType.HAND_OVER])


def lose_the_stamp_on_the_way_to_the_taker(stage: Stage) -> Fault:
    return stage.world.cut(stage.s, stage["b"], kinds=[FrameType.STAMP])


def lose_the_stamp_on_the_way_to_the_giver(stage: Stage) -> Fault:
    return stage.world.cut(stage.s, stage["a"], kinds=[FrameType.STAMP])


@seeds
@pytest.mark.parametrize(
    "lose", [lose_the_request, lose_the_stamp_on_the_way_to_the_taker, lose_the_stamp_on_the_way_to_the_giver]
)
def test_a_word_that_was_lost_is_asked_for_again(seed: int, lose: Callable[[Stage], Fault]) -> None:
    stage = a_backlog(seed)
    fault = lose(stage)
    stage.run_until(lambda: fenced(stage) or bool(moves(stage)), timeout=2.0)
    stage.run(0.5)
    fault.end()
    stage.run_until(lambda: not fenced(stage) and bool(moves(stage)), timeout=2.0)
    expect_once(stage)


@seeds
def test_what_was_meant_for_one_that_leaves_stays_with_the_giver(seed: int) -> None:
    stage = a_backlog(seed)
    fault = lose_the_request(stage)
    stage.run_until(lambda: fenced(stage), timeout=2.0)
    stage["b"].leave()
    stage.run_until(lambda: stage.in_force() == {"a"}, timeout=2.0)
    fault.end()
    stage.run_until(lambda: bool(moves(stage)), timeout=2.0)
    assert stage.names([moves(stage)[0][1].to]) == {"a"}
    expect_once(stage)


@seeds
def test_a_giver_that_leaves_goes_when_what_it_gave_is_anothers(seed: int) -> None:
    stage = a_backlog(seed)
    fault = lose_the_request(stage)
    stage.run_until(lambda: fenced(stage), timeout=2.0)
    stage["a"].leave()
    stage.run(0.5)
    assert stage["a"].alive
    fault.end()
    expect_once(stage)
    stage.run_until(lambda: not stage["a"].alive, timeout=5.0)


@seeds
def test_a_giver_that_is_struck_out_meanwhile_gives_nothing_and_its_heir_has_all(seed: int) -> None:
    stage = a_backlog(seed, "abc")
    lose_the_request(stage)
    stage.run_until(lambda: fenced(stage), timeout=2.0)
    stage.world.partition([stage["a"]], [stage.s], for_s=3.0)
    stage.run_until(lambda: "a" not in stage.in_force(), timeout=4.0)
    stage.world.heal()
    expect_once(stage, repeats=1)


@seeds
def test_a_giver_that_was_struck_out_and_gets_its_lane_back_has_all_of_it(seed: int) -> None:
    """Its request comes when it has the lane again, and has gone on: then it no longer counts."""
    stage = a_backlog(seed, handler=lambda _message: 0.3)
    lost = lose_the_request(stage)
    stage.run_until(lambda: fenced(stage), timeout=2.0)
    ask = stage["a"].machine.streams[stage.s.id]._hand_over
    cut = stage.world.partition([stage["a"]], [stage.s])
    stage.run_until(lambda: stage.in_force() == {"b"}, timeout=4.0)
    stage["b"].crash()
    cut.end()
    stage.run_until(lambda: stage.in_force() == {"a"}, timeout=10.0)
    stage["a"].handler = quick
    stage.join("c")
    stage.run_until(lambda: ask.first in stage.handled_by("a"), timeout=30.0)
    lost.end()
    late = encode_control(replace(ask, to=stage["c"].id), label_tag(LABEL))
    stage.world.network.send("a", [(stage.s.name, late)])
    stage.run(0.5)
    assert all(moved.first != ask.first for _, moved in moves(stage))
    expect_once(stage, repeats=8)


@seeds
def test_what_was_handed_over_can_be_handed_on(seed: int) -> None:
    """`b` is as slow as `a` once it has something of it, and `c`, which comes later, is quick."""
    stage = a_backlog(seed)
    stage.run_until(lambda: bool(moves(stage)), timeout=2.0)
    stage["b"].handler = slow
    stage.join("c")
    expect_once(stage)
    on = [(moved.stamp, moved.slot, moved.first) for _, moved in moves(stage)]
    assert len(on) == len(set(on)) and len(on) > 3
    assert stats(stage, "b").handed_over > 0 and stage.handled_by("c")
