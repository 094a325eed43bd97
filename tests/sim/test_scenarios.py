"""The schedules that the design page names, and what each shows beyond "no promise was broken". All also with keys."""

from __future__ import annotations

import pytest

from rvq.sim import Link, State, World
from rvq.sim.history import Started
from rvq.timings import Timings
from rvq.wire.frames import FrameType
from tests.sim.stage import (
    BUSY_S,
    DEAF_OUT_S,
    LABEL,
    LEASE_OVER_S,
    PROMPT_S,
    SLOWEST,
    STRUCK_OUT_S,
    TAKEN_OVER_S,
    TIMINGS,
    Stage,
)

SEEDS = range(5)


@pytest.fixture(params=[False, True], ids=["plain", "keyed"])
def keyed(request: pytest.FixtureRequest) -> bool:
    return request.param


@pytest.fixture(params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def victim(seed: int) -> str:
    """Sometimes the keeper."""
    return "abc"[seed % 3]


def slow(seconds: float) -> object:
    return lambda _message: seconds


# --- one that hears too little, or is heard too little ------------------------------------------------------------


def expect_struck_out_and_let_in_again(stage: Stage, victim: str, lasted: float, out_s: float) -> None:
    """While it lasts the victim starts nothing and the others have it all; afterwards it takes part again."""
    began, ended = stage.t0, stage.t0 + lasted
    out_at, _ = stage.struck_out(victim, began)
    assert out_at <= began + out_s
    assert not stage.starts(victim, since=began + LEASE_OVER_S, until=ended)
    wait_s = TIMINGS.heir_wait * SLOWEST
    assert stage.delay_max(began, out_at) <= out_s + wait_s + BUSY_S, "what was its own is taken over"
    assert stage.delay_max(out_at, ended) <= BUSY_S + wait_s * stage.keyed, "what comes then goes to the others"
    in_at, first = stage.let_in(victim, ended)
    assert ended < in_at <= ended + 4.0
    mine = stage.handled_by(victim, since=in_at)
    assert mine and min(mine) >= first, "nothing from before it was let in"


def test_deaf_to_everyone(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.cut(stage.others(victim), stage[victim], for_s=4.5)
    stage.end()
    expect_struck_out_and_let_in_again(stage, victim, 4.5, DEAF_OUT_S)


def test_deaf_to_the_sender_only(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.cut(stage.s, stage[victim], for_s=4.5)
    stage.run(3.0)
    assert {table.members for table in stage.tables().values()} == {(100, 200, 300)}, "its peers still count on it"
    stage.end()
    expect_struck_out_and_let_in_again(stage, victim, 4.5, DEAF_OUT_S)


def test_unheard_by_the_sender_only(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.cut(stage[victim], stage.s, for_s=4.5)
    stage.run(3.0)
    assert {table.members for table in stage.tables().values()} == {(100, 200, 300)}, "its peers still count on it"
    stage.end()
    expect_struck_out_and_let_in_again(stage, victim, 4.5, STRUCK_OUT_S)


def test_two_that_hear_a_third_but_not_each_other(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    one, other = {"a", "b", "c"} - {victim}
    stage.world.partition(stage[one], stage[other], for_s=5.0)
    stage.run(5.0)
    during = stage.switches(stage.t0)
    assert len(during) <= 12, "keepers who contradict each other slow down"
    assert all(victim in members for _, _, members in during), "the one that everyone hears is in all the time"
    stage.run_until(lambda: stage.in_force() == {"a", "b", "c"}, timeout=10.0)
    stage.end()
    assert stage.delay_max(stage.t0) <= TAKEN_OVER_S


def test_cut_off_until_just_after_being_struck_out_then_let_in(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed, rate=150.0, messages=900, handler=slow(0.015))
    fault = stage.world.partition([stage[victim]], stage.others(victim))
    out_at = stage.run_until(lambda: victim not in stage.in_force(), timeout=STRUCK_OUT_S)
    fault.end()
    in_at = stage.run_until(lambda: victim in stage.in_force(), timeout=4.0)
    assert in_at >= out_at + 2 * TIMINGS.heartbeat / SLOWEST, "three good heartbeats"
    stage.end()
    _, first_without = stage.struck_out(victim, stage.t0)
    old = [start for start in stage.starts(victim, since=out_at) if start.sequence < first_without]
    assert not old, "its old lanes are others' now"


def test_struck_out_without_hearing_of_it(seed: int, keyed: bool, victim: str) -> None:
    """The echo rule: an echo is worth nothing to one who does not know the stamps that it belongs to."""
    stage = Stage(seed, keyed=keyed, rate=150.0, messages=900, handler=slow(0.015))
    fault = stage.world.partition([stage[victim]], [stage.s])
    stage.world.cut(stage.others(victim), stage[victim], kinds=[FrameType.STAMP])
    out_at = stage.run_until(lambda: victim not in stage.in_force(), timeout=STRUCK_OUT_S)
    fault.end()
    stage.run_until(lambda: victim in stage.in_force(), timeout=4.0)
    stage.run(2.0)
    assert not stage.starts(victim, since=out_at), "it was let in, and is echoed, but does not know by which stamps"
    stage.world.heal()
    healed_at = stage.world.now
    stage.end()
    assert stage.handled_by(victim, since=healed_at)


def test_each_time_it_is_struck_out_it_stays_out_longer(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=1000)
    pauses = []
    for _ in range(3):
        fault = stage.world.partition([stage["b"]], stage.others("b"))
        stage.run_until(lambda: "b" not in stage.in_force(), timeout=STRUCK_OUT_S)
        fault.end()
        began = stage.world.now
        pauses.append(stage.run_until(lambda: "b" in stage.in_force(), timeout=12.0) - began)
        stage.run(0.3)
    assert pauses[0] < pauses[1] < pauses[2]
    stage.end()


def test_sender_and_one_receiver_against_two_sender_alive(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed, messages=800)
    apart = {"a", "b", "c"} - {victim}
    stage.world.partition([stage.s, stage[victim]], [stage[name] for name in apart], for_s=5.0)
    stage.run(5.0)
    healed_at = stage.world.now
    assert stage.in_force() == {victim}
    assert not stage.starts(*apart, since=stage.t0 + TIMINGS.orphan_for * SLOWEST, until=healed_at)
    alone_at = next(at for at, _, members in stage.switches(stage.t0) if members == {victim})
    assert alone_at <= stage.t0 + STRUCK_OUT_S
    stage.run_until(lambda: stage.in_force() == {"a", "b", "c"}, timeout=10.0)
    stage.end()
    assert stage.handled_by(*apart, since=healed_at), "the others work again"


# --- keepers ------------------------------------------------------------------------------------------------------


def test_keeper_naps_1_1_s(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.pause(stage["a"], 1.1)
    stage.run(1.1)
    woken_at = stage.world.now
    stage.end()
    assert all(table.members == (100, 200, 300) for table in stage.tables().values())
    assert stage.in_force() == {"a", "b", "c"}
    assert stage.handled_by("a", since=woken_at), "it works again"
    if any("a" not in members for _, _, members in stage.switches(stage.t0)):
        in_at, first = stage.let_in("a", stage.struck_out("a", stage.t0)[0])
        assert min(stage.handled_by("a", since=in_at)) >= first


def test_a_keeper_that_napped_buries_nobody(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.pause(stage["a"], 3.0)
    stage.run(3.0)
    stage.run_until(lambda: stage.in_force() == {"a", "b", "c"}, timeout=6.0)
    lines = [line for line in stage.world.story.lines if "TABLE" in line and line.split()[1] == "a"]
    later = [line for line in lines if float(line.split()[0]) > stage.t0]
    assert not [line for line in later if "[a]" in line or "[a b]" in line or "[a c]" in line]
    stage.end()


def test_keeper_writes_tables_only_some_hear_then_dies(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, names="abcd")
    stage.world.cut(stage["a"], [stage["c"], stage["d"]])
    stage.join("e")
    stage.run_until(lambda: stage["a"].machine.table.members == (100, 200, 300, 400, 500), timeout=2.0)
    stage["a"].crash()
    died_at = stage.world.now
    stage.run_until(lambda: stage.in_force() == {"b", "c", "d", "e"}, timeout=4.0)
    stage.end()
    assert {table.members for table in stage.tables().values()} == {(200, 300, 400, 500)}
    assert stage.handled_by("e", since=died_at)
    assert stage.delay_max(died_at + STRUCK_OUT_S) <= TAKEN_OVER_S


def test_a_keeper_that_is_deaf_for_good_keeps_nobody_out(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, names="ab", messages=200)
    stage.world.cut([stage.s, stage["b"]], stage["a"])
    stage.run(3.0)
    stage["b"].crash()
    came = stage.join("c")
    stage.world.cut(came, stage["a"])
    stage.run_until(lambda: stage.in_force() == {"c"}, timeout=30.0)
    stage.end()


def test_a_deaf_one_that_wrote_the_first_table_keeps_nobody_out(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, names="", messages=100)
    a, b = stage.join("a"), stage.join("b")
    stage.world.cut([stage.s, b], a)
    stage.run_until(lambda: stage.in_force() == {"b"}, timeout=30.0)
    stage.end()
    assert not stage.starts("a")


# --- coming and going ---------------------------------------------------------------------------------------------


def test_all_leave_in_turn_one_comes_later(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed)
    for turn, name in enumerate("abc"):
        stage.world.after(0.4 * turn, stage[name].leave)
    stage.run(3.0)
    assert all(receiver.state is State.ENDED for receiver in stage.world.receivers), "nobody is kept"
    assert "nobody of group 'default' is left" in (stage.s.machine.waiting_for or ""), "the sender says so"
    started = len(stage.starts())
    stage.run(2.0)
    assert len(stage.starts()) == started
    held = stage.s.machine.undone
    assert held > 100
    stage.join("d")
    came_at = stage.world.now
    verdict = stage.end()
    assert verdict.started == verdict.submitted, "nothing was done twice"
    assert len(stage.handled_by("d")) >= held
    assert stage.starts("d")[0].at <= came_at + TIMINGS.first_table * SLOWEST + 1.0


def test_all_killed_new_ones_come(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed)
    for name in "abc":
        stage[name].crash()
    stage.run(2.0)
    assert not stage.starts(since=stage.t0)
    stage.join("d")
    stage.join("e")
    came_at = stage.world.now
    stage.end()
    left = {m.sequence for m in stage.submitted()} - stage.handled_by("a", "b", "c")
    assert left <= stage.handled_by("d", "e")
    assert stage.handled_by("d") and stage.handled_by("e")
    if not keyed:
        assert stage.starts("d", "e")[0].at <= came_at + TIMINGS.first_table * SLOWEST + PROMPT_S
    # Nobody is left who could say that the dead did not take the stream for orphaned: that time must pass.
    assert stage.delay_max(stage.t0 + TIMINGS.orphan_wait * SLOWEST + 1.0) <= 2 * BUSY_S


def test_one_dies_while_two_join_at_once(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    stage[victim].crash()
    stage.join("d")
    stage.join("e")
    expected = {"a", "b", "c", "d", "e"} - {victim}
    stage.run_until(lambda: stage.in_force() == expected, timeout=3.0)
    assert len(stage.switches(stage.t0)) <= 5
    stage.end()
    assert stage.handled_by("d") and stage.handled_by("e")
    assert stage.delay_max(stage.t0) <= TAKEN_OVER_S


def test_a_dead_receiver_is_replaced_in_time(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, names="abcd")
    victim = "abcd"[seed % 4]
    stage[victim].crash()
    out_at = stage.run_until(lambda: victim not in stage.in_force(), timeout=1.5)
    stage.end()
    assert stage.delay_max(0.0, out_at) <= TAKEN_OVER_S, "what it left is taken over"
    if not keyed:
        assert stage.delay_max(out_at + 0.01) <= PROMPT_S, "what comes later goes to the others"


def test_leaves_with_work_left(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=300, rate=100.0, handler=slow(0.04), names="abc")
    left_at = stage.world.now
    stage["b"].leave()
    stage.run_until(lambda: "b" not in stage.in_force(), timeout=1.0)
    _, first_without = stage.struck_out("b", left_at)
    done = stage.handled_by("b")
    verdict = stage.end()
    assert verdict.started == verdict.submitted, "nothing was done twice"
    assert stage["b"].state is State.ENDED
    assert len(stage.handled_by("b")) > len(done), "it went on with what was its own"
    assert max(stage.handled_by("b")) < first_without, "and got nothing new"
    if not keyed:
        before = [s for s in stage.starts() if s.sequence < first_without and s.at > left_at]
        took_over = [s for s in before if s.asked_at is not None]
        assert not took_over, "nobody had to inherit"


def test_last_acks_reach_only_the_sender_then_death(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed, rate=120.0)
    peers = [r for r in stage.world.receivers if r.name != victim]
    stage.world.cut(stage[victim], peers)
    stage.run(0.05 + 0.05 * seed)
    stage[victim].crash()
    died_at = stage.world.now
    stage.end()
    unreported = TIMINGS.report * SLOWEST + 0.005
    finished = {event.sequence: event.at for event in stage.finishes(victim)}
    for sequence in stage.repeats() & finished.keys():
        assert finished[sequence] >= died_at - unreported, "what the sender knows is not done again"


# --- senders ------------------------------------------------------------------------------------------------------


def test_sender_stopped_4_s(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=600, rate=200.0, handler=slow(0.05))
    switches = len(stage.s.stamps)
    stage.world.pause(stage.s, 4.0)
    stage.run(4.0)
    late = stage.starts(since=stage.t0 + 1.5)
    if not keyed:
        assert len(late) > 50, "receivers go on with what they hold"
    verdict = stage.end()
    assert len(stage.s.stamps) == switches, "nobody is struck out for the sender's own nap"
    assert verdict.started == verdict.submitted, "nothing is done twice"


def test_a_word_from_a_while_ago_makes_no_orphan(seed: int, keyed: bool) -> None:
    """Whoever once did not hear the sender says so for long after: that is for the sender to know, not for others."""
    stage = Stage(seed, keyed=keyed, names="ab", rate=150.0, messages=1200, handler=slow(0.012))
    stage.world.cut(stage.s, stage["b"], for_s=0.85)
    stage.run(2.5)
    stage.world.cut(stage.s, stage["a"], for_s=6.0)
    began = stage.world.now
    stage.end()
    assert not stage.starts("a", since=began + LEASE_OVER_S, until=began + 6.0), "it is alone with its silence"
    assert stage.delay_max(began, began + 1.0) <= DEAF_OUT_S + TIMINGS.orphan_wait


def test_sender_dies(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=900, rate=150.0, handler=slow(0.08))
    stage.run(1.0)
    stage.s.crash()
    died_at = stage.world.now
    stage.run(9.0)
    verdict = stage.world.verdict()
    assert verdict.ok, verdict
    last = max(start.at for start in stage.starts())
    assert last <= died_at + TIMINGS.orphan_for * SLOWEST, "nobody goes on for ever"
    if not keyed:
        assert last >= died_at + TIMINGS.orphan_for / SLOWEST - 1.0, "but they do go on"
    finished = {event.sequence for event in stage.finishes()}
    lost = sum(receiver.machine.stats.lost for receiver in stage.world.receivers)
    assert lost and any("is gone: lost" in line for line in stage.world.story.lines), "what is lost is said"
    running = len(stage.world.receivers)
    assert lost <= stage.s.submitted - len(finished) + running, "and nothing that is done, but what was just at work"


def test_sender_dies_and_what_one_lacks_comes_from_the_others(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=150, rate=300.0, handler=slow(0.002))
    stage.world.cut(stage.s, stage["b"])
    stage.run(0.2)
    stage.s.crash()
    stage.run(9.0)
    verdict = stage.world.verdict()
    assert verdict.ok, verdict
    if not keyed:
        assert verdict.finished == stage.s.machine.last


def test_another_sender_takes_up_the_work(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.restart(stage.s, after=1.0)
    stage.end()
    [_, second] = stage.world.senders
    assert second.alive and second.finished and second.submitted


def test_three_senders_one_stopped(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=200)
    stage.sender("t", messages=200)
    stage.sender("u", messages=200)
    stage.run(1.0)
    stage.world.pause(stage.s, 3.0)
    began = stage.world.now
    stage.end()
    mine = stage.s.id
    others = [m for m in stage.submitted(since=began, until=began + 2.0) if m.stream != mine]
    started = {(s.stream, s.sequence): s.at for s in stage.starts()}
    assert others
    assert max(started[m.stream, m.sequence] - m.at for m in others) <= PROMPT_S, "the others go on as before"


# --- stopped, late and repeated -----------------------------------------------------------------------------------


def test_stop_for_ten_seconds_with_a_full_socket_buffer(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed, messages=1500, rate=100.0, buffer_bytes=48 * 1024)
    stage.world.pause(stage[victim], 10.0)
    stage.run(9.99)
    assert stage[victim].overflowed, "its buffer is full of what is no longer its own"
    stage.run(0.01)
    woken_at = stage.world.now
    stage.end()
    in_at, first = stage.let_in(victim, woken_at)
    assert not stage.starts(victim, since=stage.t0 + LEASE_OVER_S, until=in_at)
    mine = stage.handled_by(victim, since=in_at)
    assert mine and min(mine) >= first
    assert stage.delay_max(stage.t0, woken_at) <= TAKEN_OVER_S, "the others have done it all long ago"


def test_repeated_heartbeats_of_the_dead(seed: int, keyed: bool, victim: str) -> None:
    stage = Stage(seed, keyed=keyed)
    stage.world.disturb(Link(duplicate=0.9, late=5.0), [stage[victim]], stage.others(victim))
    stage.run(1.0)
    stage[victim].crash()
    died_at = stage.world.now
    out_at = stage.run_until(lambda: victim not in stage.in_force(), timeout=STRUCK_OUT_S)
    stage.run(5.0)
    assert not [members for at, _, members in stage.switches(out_at) if victim in members], "nobody is revived"
    assert all(victim not in stage.names(table.members) for table in stage.tables().values())
    stage.end()
    assert stage.delay_max(died_at) <= TAKEN_OVER_S


def test_delayed_heartbeats_of_the_dead(seed: int, keyed: bool, victim: str) -> None:
    """One that is newer than all that came before may revive it for a moment: nobody can tell. But not for long."""
    late_s = 3.0
    stage = Stage(seed, keyed=keyed)
    stage.world.disturb(Link(reorder=0.5, late=late_s), [stage[victim]], stage.others(victim))
    stage.run(0.5)
    stage[victim].crash()
    died_at = stage.world.now
    stage.run(late_s + 2 * STRUCK_OUT_S)
    assert victim not in stage.in_force()
    assert all(victim not in stage.names(table.members) for table in stage.tables().values())
    assert len(stage.switches(died_at)) <= 8
    over_at = stage.world.now
    stage.end()
    assert not [members for at, _, members in stage.switches(over_at) if victim in members]


def test_late_and_repeated_everything(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=300)
    stage.world.disturb(Link(loss=0.1, duplicate=0.3, reorder=0.3, late=1.0))
    stage.run(4.0)
    stage.world.heal()
    stage.end()


def test_leaves_as_a_sender_dies(seed: int) -> None:
    """What it has to ask is long due by its clock when the next datagrams come: that is no nap, which would be given to
    the dead sender as well, so that it was never silent."""
    stage = Stage(seed, messages=200, handler=slow(0.03))
    dying = stage.sender("t", messages=4000, rate=1000.0)
    stage.run(0.5)
    stage["b"].leave()
    dying.crash()
    stage.end()
    assert stage["b"].state is State.ENDED


# --- many ---------------------------------------------------------------------------------------------------------


def test_a_join_is_no_pause(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, rate=100.0, messages=400, settle_s=2.5)
    stage.join("d")
    stage.run_until(lambda: "d" in stage.in_force(), timeout=0.6)
    assert len(stage.switches(stage.t0)) == 1
    stage.end()
    assert stage.delay_max(stage.t0, stage.t0 + 1.0) <= PROMPT_S
    assert not stage.repeats()


def test_twenty_joins_in_a_second(seed: int, keyed: bool) -> None:
    stage = Stage(seed, keyed=keyed, messages=400)
    for number in range(20):
        stage.world.after(stage.world.random.random(), lambda number=number: stage.join(f"d{number}"))
    stage.run_until(lambda: len(stage.in_force()) == 23, timeout=3.0)
    assert len(stage.switches(stage.t0)) <= 5, "joiners gather"
    stage.end()
    assert stage.delay_max(stage.t0, stage.t0 + 2.0) <= (2 * PROMPT_S if keyed else PROMPT_S), "and nobody waits"
    assert not stage.repeats()


@pytest.mark.parametrize("what", ["dies", "leaves", "joins"])
def test_two_groups_of_which_one_switches(seed: int, keyed: bool, what: str) -> None:
    stage = Stage(seed, keyed=keyed)
    for name in "de":
        stage.join(name, group="audit")
    stage.run(2.0)
    assert stage.in_force("audit") == {"d", "e"}
    began = stage.world.now
    if what == "joins":
        stage.join("f", group="audit")
    elif what == "leaves":
        stage["e"].leave()
    else:
        stage["e"].crash()
    stage.end()
    assert stage.in_force("audit") == {"joins": {"d", "e", "f"}, "leaves": {"d"}, "dies": {"d"}}[what]
    assert {frozenset(members) for _, _, members in stage.switches(began)} == {frozenset("abc")}
    assert stage.delay_max(began, began + 3.0) <= PROMPT_S, "the other group does not notice"
    owed = next(stamp.at for _, stamp in stage.s.stamps if any(g.group == "audit" for g in stamp.groups))
    everything = {m.sequence for m in stage.submitted()}
    assert {s.sequence for s in stage.starts(group="default")} == everything
    assert {s.sequence for s in stage.starts(group="audit")} == {q for q in everything if q >= owed}


def test_work_is_shared_by_weight(seed: int) -> None:
    stage = Stage(seed, names="", messages=0)
    for name, weight in (("a", 1), ("b", 3)):
        stage.join(name, weight=weight)
    stage.run(1.0)
    stage.sender("t", messages=400, rate=400.0)
    stage.end()
    assert len(stage.starts("b")) == 3 * len(stage.starts("a"))


@pytest.mark.parametrize("few_seeds", [0, 1])
def test_a_hundred_that_join_in_one_second_settle_in_one_or_two_tables(few_seeds: int) -> None:
    stage = Stage(few_seeds, names="", messages=20, rate=10.0, verbose=0)
    for number in range(100):
        stage.world.after(stage.world.random.random(), lambda number=number: stage.join(f"a{number}"))
    stage.run(3.0)
    tables = stage.tables().values()
    assert {len(table.members) for table in tables} == {100}
    assert {table.version[0] for table in tables} <= {1, 2}
    stage.end()
    assert len(stage.in_force()) == 100


def test_a_table_for_a_thousand_members_is_made_and_adopted() -> None:
    """Everyone hears the keeper and the sender only, or this would be a million heartbeats five times a second."""
    world = World(0, link=Link(loss=1.0), timings=Timings(heartbeat=1.0, expiry=5.0, lease=5.0, orphan_for=20.0))
    keeper = world.receiver(LABEL, id=1)
    sender = world.sender(LABEL, messages=65, rate=10.0)
    world.disturb(Link(), [keeper, sender], [keeper, sender])
    world.run(until=5.0)

    def join() -> None:
        receiver = world.receiver(LABEL)
        world.disturb(Link(), [keeper, sender], [receiver])
        world.disturb(Link(), [receiver], [keeper, sender])

    for _ in range(999):
        world.after(0.3 * world.random.random(), join)
    world.run(until=6.0)
    tables = {receiver.machine.table for receiver in world.receivers}
    assert [len(table.members) for table in tables if table.index == 0] == [1000]
    assert len({table.version for table in tables}) == 1, "the same for all"
    world.settle(20.0)
    world.verdict().raise_if_bad()
    assert [len(stamp.groups[0].members) for _, stamp in sender.stamps][-1] == 1000
    assert len({start.receiver for start in world.history if isinstance(start, Started)}) > 5


# --- keys of several senders --------------------------------------------------------------------------------------


def test_a_key_of_two_senders_meets_one_receiver_once_both_are_on_one_table(seed: int, victim: str) -> None:
    """Whatever each of them struck out on the way: one joins, one that only `t` does not hear comes back, one dies."""
    stage = Stage(seed, keyed=True, messages=900)
    t = stage.sender("t", messages=900)
    stage.run(1.0)
    stage.world.partition([stage[victim]], [t], for_s=2.0)
    stage.run(1.0)
    stage.join("d")
    stage.run(3.0)
    crashed = "cab"[seed % 3]
    stage[crashed].crash()
    stage.run(4.0)
    (mine,), (others,) = stage.s.stamps[-1][1].groups, t.stamps[-1][1].groups
    assert stage.names(member.id for member in mine.members) == {"a", "b", "c", "d"} - {crashed}
    assert (mine.members, mine.shard_map) == (others.members, others.shard_map)
    stage.end()
    since = {stage.s.id: mine.at, t.id: others.at}
    owners: dict[object, set[str]] = {}
    for start in stage.starts():
        if start.sequence >= since[start.stream]:
            owners.setdefault(start.key, set()).add(start.receiver)
    assert len(owners) > 10 and all(len(receivers) == 1 for receivers in owners.values())
