"""A sending end, driven with the frames that receivers would send. Times are numbers; nothing waits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.core.end import PROMPT_S
from rvq.core.flow import WINDOW_BYTES_FIRST
from rvq.core.gates import ALL, numbers_to_bits
from rvq.core.machine import Address, Route, Target
from rvq.core.sender import ECHOES_PER_FRAME, MANY_ASK_S, PROGRESS_FRAMES_MAX, TAIL_S, SenderMachine
from rvq.core.shards import deal, draft
from rvq.errors import BadMessage, Closed, MessageTooLarge
from rvq.timings import Timings
from rvq.wire.batch import read_batch
from rvq.wire.codec import decode_control, encode_control, peek, read_data_header
from rvq.wire.frames import (
    NO_VERSION,
    Alive,
    AskProgress,
    AskStamps,
    AskTable,
    Control,
    DataHeader,
    Echo,
    FrameType,
    Goodbye,
    HandOver,
    Heard,
    LaneAnswer,
    LaneProgress,
    LaneQuestion,
    Member,
    MissingParts,
    Moved,
    Nak,
    Progress,
    Report,
    SenderAlive,
    SenderGoodbye,
    Silence,
    Stamp,
    StreamReport,
    TableFrame,
    Tried,
    Version,
    label_tag,
)
from rvq.wire.records import make_records, shard_of

T = Timings()
ME = 0xABC
LABEL, GROUP = "work", "default"
TAG = label_tag(LABEL)
WALL = 1_700_000_000.0
STEP = 0.2

F = TypeVar("F")


class Bench:
    """A sender, what it sent, and receivers that exist only as the frames they would send."""

    def __init__(self, timings: Timings = T, **options: Any) -> None:
        self.now = 0.0
        self.machine = SenderMachine(LABEL, ME, timings=timings, random=Random(1), now=0.0, wall_offset=WALL, **options)
        self.sent: list[tuple[Target, bytes]] = []
        self.counters: dict[int, int] = {}
        self.versions: dict[int, Version] = {}
        self.beat = 0
        self.stamp = 0

    # What it says.

    def drain(self) -> None:
        self.machine.check_invariants()
        outgoing = self.machine.take_outgoing()
        self.sent += outgoing
        for _, datagram in outgoing:
            if peek(datagram)[0] > FrameType.TAIL:
                frame = decode_control(datagram)
                if isinstance(frame, SenderAlive):
                    self.beat = max(self.beat, frame.counter)
                elif isinstance(frame, Stamp):
                    self.stamp = max(self.stamp, frame.number)

    def said(self, kind: type[F], target: Target | None = None) -> list[F]:
        """The control frames of a kind since the last `forget`."""
        frames = [
            decode_control(datagram)
            for to, datagram in self.sent
            if peek(datagram)[0] > FrameType.TAIL and target in (None, to)
        ]
        return [frame for frame in frames if isinstance(frame, kind)]

    def data(self, kind: FrameType = FrameType.DATA) -> list[tuple[Target, bytes]]:
        return [(to, datagram) for to, datagram in self.sent if peek(datagram)[0] == kind]

    def headers(self, kind: FrameType = FrameType.DATA) -> list[DataHeader]:
        return [read_data_header(datagram) for _, datagram in self.data(kind)]

    def bodies(self) -> list[Any]:
        """Of everything that was multicast."""
        batches = [read_batch(datagram) for _, datagram in self.data()]
        return [content.body for batch in batches for content in batch.contents(range(batch.count)) if content]

    def forget(self) -> None:
        self.drain()
        self.sent.clear()

    # What it hears.

    def hear(self, frame: Control, source: Address = None) -> None:
        self.machine.receive(self.now, encode_control(frame, TAG), source or f"at {frame.source}")
        self.drain()

    def table(
        self,
        counter: int,
        keeper: int,
        *ids: int,
        draining: tuple[int, ...] = (),
        by: int | None = None,
        group: str = GROUP,
    ) -> None:
        """A table is heard, and is that of all who are in it from their next heartbeat on."""
        version = Version(counter, keeper)
        members = tuple(Member(id, 1) for id in ids)
        self.hear(TableFrame(by or keeper, LABEL, group, version, members, draining))
        for id in (*ids, *draining):
            self.versions[id] = version

    def alive(
        self,
        *ids: int,
        deaf: bool = False,
        leaving: bool = False,
        silent: bool = False,
        orphaned: bool = False,
        stamp: int | None = None,
        lanes: tuple[LaneProgress, ...] = (),
        taken: int = 0,
        window: int = WINDOW_BYTES_FIRST,
        group: str = GROUP,
    ) -> None:
        """Heartbeats of receivers that have heard everything the sender said, unless told."""
        for id in ids:
            self.counters[id] = counter = self.counters.get(id, 0) + 1
            known = self.stamp if stamp is None else stamp
            heard = () if deaf else (Heard(ME, self.beat, known, silent, orphaned),)
            reports = (StreamReport(ME, taken, window, lanes),) if lanes or taken else ()
            version = self.versions.get(id, NO_VERSION)
            self.hear(Alive(id, LABEL, group, 1, counter, counter == 1, leaving, 0, version, heard, reports))

    def report(self, id: int, *lanes: LaneProgress, taken: int = 10**9, window: int = 10**6) -> None:
        self.hear(Report(id, StreamReport(ME, taken, window, lanes)))

    def nak(self, id: int, *runs: int, parts: tuple[MissingParts, ...] = ()) -> None:
        self.hear(Nak(id, ME, runs, parts))

    def ask(self, id: int, *lanes: LaneQuestion, group: str = GROUP) -> list[Progress]:
        """The answer to an heir."""
        self.forget()
        self.hear(AskProgress(id, ME, group, 77, lanes))
        return self.said(Progress, f"at {id}")

    # Time.

    def run(self, until: float, *ids: int, **how: Any) -> None:
        """Time passes; these are heard both ways every `STEP`."""
        beat_at = self.now
        while True:
            due = min(max(self.now, self.machine.next_deadline()), beat_at)
            if due > until:
                break
            self.now = due
            if due == beat_at:
                self.alive(*ids, **how)
                beat_at += STEP
            if self.machine.next_deadline() <= self.now:
                self.machine.wake(self.now)
                self.drain()
        self.now = until

    def send(self, *bodies: Any, key: str | None = None) -> None:
        for body in bodies:
            self.machine.submit(self.now, body, key=key)
        self.machine.flush(self.now)
        self.drain()

    @property
    def members(self) -> list[int]:
        view = self.machine.tables.get(GROUP)
        return list(view.members) if view else []


def with_members(*ids: int, **options: Any) -> Bench:
    """At 1.0: these are in force and were echoed."""
    bench = Bench(**options)
    bench.run(0.1)
    bench.table(1, ids[0], *ids)
    bench.run(1.0, *ids)
    assert bench.members == list(ids)
    bench.forget()
    return bench


@pytest.fixture
def bench() -> Bench:
    """5, 6 and 7 are in force."""
    return with_members(5, 6, 7)


def done(slot: int, floor: int, *runs: int, stamp: int = 1) -> LaneProgress:
    return LaneProgress(stamp, slot, floor, runs)


def answer(slot: int, floor: int, *runs: int, stamp: int = 1, whole: bool = True) -> LaneAnswer:
    return LaneAnswer(stamp, slot, 1, floor, runs, whole)


# --- from hello to done -------------------------------------------------------------------------------------------


def test_a_starting_sender_says_hello_at_once() -> None:
    bench = Bench()
    assert bench.machine.next_deadline() == 0.0
    bench.run(0.0)
    (hello,) = bench.said(SenderAlive, Route.CONTROL)
    assert hello.hello and hello.counter == 1 and hello.newest_stamp == 0


def test_it_beats_every_heartbeat(bench: Bench) -> None:
    bench.run(1.0 + 10 * T.heartbeat, 5, 6, 7)
    assert 9 <= len({frame.counter for frame in bench.said(SenderAlive)}) <= 12
    assert not any(frame.hello for frame in bench.said(SenderAlive))


def test_a_receivers_hello_is_answered_at_once() -> None:
    bench = Bench()
    bench.run(0.11)
    bench.forget()
    bench.alive(5, deaf=True)
    bench.run(0.116)
    assert bench.said(SenderAlive)


def test_messages_are_held_until_somebody_listens_and_it_says_so() -> None:
    bench = Bench()
    bench.send("early")
    bench.run(1.0)
    assert not bench.data()
    assert bench.machine.undone == 1 and not bench.machine.all_done
    assert "nobody listens to 'work'" in str(bench.machine.waiting_for)
    bench.table(1, 5, 5)
    bench.run(1.5, 5)
    assert bench.bodies() == ["early"]
    assert bench.machine.waiting_for is None


def test_a_table_that_is_announced_and_not_known_is_asked_for_but_not_too_often() -> None:
    bench = Bench()
    bench.run(0.1)
    bench.versions[5] = bench.versions[6] = Version(3, 5)
    bench.alive(5, 6)
    assert bench.said(AskTable) == [AskTable(ME, GROUP, Version(3, 5))]
    bench.now += 0.06
    bench.alive(6)
    assert bench.said(AskTable, "at 6") == [AskTable(ME, GROUP, Version(3, 5))]


def test_a_stamp_goes_ahead_of_the_frames_that_it_is_for_on_the_same_way() -> None:
    bench = Bench()
    bench.send("early")
    bench.run(0.1)
    bench.table(1, 5, 5, 6)
    bench.alive(5)
    bench.run(0.19)
    kinds = [peek(datagram)[0] for to, datagram in bench.sent if to is Route.DATA]
    assert kinds[:2] == [FrameType.STAMP, FrameType.DATA]
    (stamp,) = bench.said(Stamp)
    assert (stamp.number, stamp.at, stamp.keyed) == (1, 1, False)
    assert [member.id for member in stamp.groups[0].members] == [5, 6]
    assert [header.stamp for header in bench.headers()] == [1]


def test_the_first_frame_waits_until_every_group_that_is_there_is_in_force() -> None:
    """Or a group that answers a little later than another would miss the first messages of a new sender."""
    bench = Bench()
    bench.send("early")
    bench.run(0.1)
    bench.table(1, 5, 5)
    bench.alive(5)
    bench.versions[8] = Version(1, 8)
    bench.alive(8, group="second")
    bench.run(0.19)
    assert bench.headers() == []
    bench.table(1, 8, 8, group="second")
    bench.alive(8, group="second")
    bench.run(0.2)
    assert bench.bodies() == ["early"]
    first = bench.said(Stamp)[-1]
    assert sorted(entry.group for entry in first.groups) == ["default", "second"]
    assert all(entry.at == 1 for entry in first.groups)


def test_frames_are_numbered_stamped_and_timed(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.send("d")
    first, second = bench.headers()
    assert (first.first, first.count, first.stamp, first.stream, first.label_tag) == (1, 3, 1, ME, TAG)
    assert (second.first, second.count) == (4, 1)
    assert first.sent_at == pytest.approx(WALL + 1.0)
    assert bench.bodies() == ["a", "b", "c", "d"]
    assert bench.machine.last == 4


def test_a_heartbeat_echoes_the_newest_counter_of_everyone_in_force(bench: Bench) -> None:
    bench.run(1.21, 5, 6, 7)
    bench.alive(99)
    bench.run(1.45, 5, 6, 7)
    newest = bench.said(SenderAlive)[-1]
    assert {echo.id for echo in newest.echoes} == {5, 6, 7}
    assert all(bench.counters[echo.id] - echo.counter <= 1 for echo in newest.echoes)


def test_one_that_is_not_heard_is_not_echoed_anew(bench: Bench) -> None:
    counter = bench.counters[7]
    bench.run(1.8, 5, 6)
    assert Echo(7, counter) in bench.said(SenderAlive)[-1].echoes
    bench.run(2.5, 5, 6)
    assert {echo.id for echo in bench.said(SenderAlive)[-1].echoes} == {5, 6}


def test_the_echoes_of_a_large_group_are_several_frames_of_one_heartbeat() -> None:
    ids = range(1000, 1000 + ECHOES_PER_FRAME + 10)
    bench = with_members(*ids)
    bench.run(1.3, *ids)
    frames = bench.said(SenderAlive)
    newest = [frame for frame in frames if frame.counter == frames[-1].counter]
    assert [len(frame.echoes) for frame in newest] == [ECHOES_PER_FRAME, 10]


def test_a_message_is_done_when_every_lane_has_reported_it(bench: Bench) -> None:
    bench.send(*range(1, 7))
    bench.report(5, done(0, 6))
    assert bench.machine.undone == 4
    assert bench.machine.is_done(GROUP, 3) and not bench.machine.is_done(GROUP, 1)
    bench.report(6, done(1, 6))
    bench.report(7, done(2, 6))
    assert bench.machine.all_done
    assert (bench.machine.undone, bench.machine.stats.acked) == (0, 6)


def test_a_heartbeat_carries_progress_too(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.alive(5, lanes=(done(0, 3), done(1, 3), done(2, 3)), taken=10**6)
    assert bench.machine.all_done


def test_what_is_done_is_told_in_frames_and_heartbeats(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.report(5, done(0, 3), done(1, 3), done(2, 3))
    bench.send("d")
    assert bench.headers()[-1].done_to == 3
    bench.run(1.3, 5, 6, 7)
    (state,) = bench.said(SenderAlive)[-1].groups
    assert (state.group, state.done_to, state.held) == (GROUP, 3, False)


def test_reports_of_strangers_and_of_other_streams_say_nothing(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.report(99, done(0, 3), done(1, 3), done(2, 3))
    bench.hear(Report(5, StreamReport(0xDEF, 0, 0, (done(0, 3),))))
    assert bench.machine.undone == 3


def test_each_group_gets_every_message_once() -> None:
    bench = with_members(5)
    bench.hear(TableFrame(9, LABEL, "audit", Version(1, 9), (Member(9, 1),), ()))
    bench.versions[9] = Version(1, 9)
    bench.alive(9, group="audit")
    bench.send("a")
    bench.report(5, done(0, 1))
    assert not bench.machine.all_done
    assert bench.machine.is_done(GROUP, 1) and not bench.machine.is_done("audit", 1)
    assert not bench.machine.is_done_by_all(1)
    bench.report(9, done(0, 1, stamp=2))
    assert bench.machine.all_done and bench.machine.is_done_by_all(1) and not bench.machine.is_done_by_all(2)


# --- batching -----------------------------------------------------------------------------------------------------


def test_small_messages_share_frames_that_are_never_too_large() -> None:
    bench = with_members(5, frame_bytes=600)
    bench.send(*("x" * 50 for _ in range(30)))
    sizes = [len(datagram) for _, datagram in bench.data()]
    assert max(sizes) <= 600
    assert len(sizes) < 6
    assert [header.first for header in bench.headers()] == sorted(header.first for header in bench.headers())
    assert sum(header.count for header in bench.headers()) == 30


def test_it_knows_when_a_frame_is_full() -> None:
    bench = with_members(5, frame_bytes=600)
    bench.machine.submit(1.0, b"x" * 300)
    assert not bench.machine.frame_is_full
    bench.machine.submit(1.0, b"x" * 300)
    assert bench.machine.frame_is_full


def test_a_frame_has_a_bounded_number_of_messages(bench: Bench) -> None:
    bench.machine.submit_records(make_records([b""] * (limits.FRAME_MESSAGES_MAX // 2)))
    bench.machine.flush(1.0)
    bench.drain()
    assert max(header.count for header in bench.headers()) <= limits.FRAME_MESSAGES_MAX
    assert bench.machine.last == limits.FRAME_MESSAGES_MAX // 2


def test_a_message_larger_than_a_frame_goes_in_fragments() -> None:
    bench = with_members(5, frame_bytes=600)
    bench.send("small", b"x" * 2000, "after")
    parts = bench.headers(FrameType.FRAGMENT)
    assert len(parts) == 4
    assert {(part.first, part.count) for part in parts} == {(2, 1)}
    assert [header.first for header in bench.headers()] == [1, 3]
    assert all(len(datagram) <= 600 for _, datagram in bench.sent if peek(datagram)[0] <= FrameType.TAIL)
    positions = [header.position for header in parts]
    assert positions == sorted(set(positions))


def test_what_cannot_be_sent_is_refused_and_takes_no_number(bench: Bench) -> None:
    with pytest.raises(BadMessage):
        bench.machine.submit(1.0, object())
    with pytest.raises(MessageTooLarge):
        bench.machine.submit(1.0, bytes(limits.MESSAGE_BYTES_MAX + 1))
    with pytest.raises(BadMessage):
        bench.machine.submit(1.0, 1, key="")
    bench.send("fine")
    assert (bench.machine.last, bench.machine.stats.inserted) == (1, 1)


def test_the_first_key_switches_the_stream_to_keys(bench: Bench) -> None:
    bench.send("plain")
    bench.send("keyed", key="k")
    (stamp,) = bench.said(Stamp)
    assert (stamp.number, stamp.at, stamp.keyed) == (2, 2, True)
    assert [header.stamp for header in bench.headers()] == [1, 2]
    bench.send("again", key="k")
    assert len(bench.said(Stamp)) == 1


# --- who is in force ----------------------------------------------------------------------------------------------


def test_stamps_with_keys_carry_the_shard_map_of_their_members(bench: Bench) -> None:
    bench.send("plain")
    shard_map = (2, 0, 1, 0) * 256
    bench.forget()
    members = (Member(5, 1), Member(6, 1), Member(7, 1))
    bench.hear(TableFrame(5, LABEL, GROUP, Version(2, 5), members, (), shard_map))
    bench.versions |= dict.fromkeys((5, 6, 7), Version(2, 5))
    bench.alive(5, 6, 7)
    assert not bench.said(Stamp), "without keys another map of the same members is no switch"
    bench.send("keyed", key="k")
    (stamp,) = bench.said(Stamp)
    assert stamp.keyed and [group.shard_map for group in stamp.groups] == [shard_map]
    bench.forget()
    bench.hear(Goodbye(7, LABEL, GROUP))
    (stamp,) = bench.said(Stamp)
    assert [group.shard_map for group in stamp.groups] == [deal(members, shard_map, members[:2])]


def test_a_newer_table_that_a_member_announces_is_stamped_from_the_next_sequence(bench: Bench) -> None:
    bench.send("a", "b")
    bench.table(2, 5, 5, 6, 7, 8)
    bench.alive(6)
    (stamp,) = bench.said(Stamp)
    assert (stamp.number, stamp.at, stamp.groups[0].version) == (2, 3, Version(2, 5))
    bench.send("c")
    assert [header.stamp for header in bench.headers()] == [1, 2]


def test_a_table_announced_by_a_stranger_is_not_adopted(bench: Bench) -> None:
    bench.table(9, 1, 1, 2, 3, 4)
    bench.run(1.5, 1, 2, 3, 4, 5, 6, 7)
    bench.hear(TableFrame(1, LABEL, GROUP, Version(10, 1), (Member(1, 1), Member(5, 1)), ()))
    bench.versions[1] = Version(10, 1)
    bench.run(2.0, 1, 2, 3, 4, 5, 6, 7)
    assert bench.members == [5, 6, 7]
    assert not bench.said(Stamp)


def test_one_that_is_not_heard_is_struck_out_and_the_stamp_says_for_how_long(bench: Bench) -> None:
    bench.run(2.5, 5, 6)
    assert bench.members == [5, 6]
    (stamp,) = bench.said(Stamp)
    assert stamp.groups[0].version == Version(1, 5), "the table is as it was"
    (silence,) = stamp.groups[0].silent
    assert silence.id == 7 and T.expiry < silence.seconds <= T.expiry + 2 * STEP + 0.01


def test_one_that_was_struck_out_is_let_in_when_it_is_heard_both_ways(bench: Bench) -> None:
    bench.run(2.5, 5, 6)
    bench.run(3.5, 5, 6, 7)
    assert bench.members == [5, 6, 7]
    assert [stamp.number for stamp in bench.said(Stamp)] == [2, 3]


def test_one_that_never_hears_the_sender_is_not_let_in(bench: Bench) -> None:
    bench.run(2.5, 5, 6)
    for _ in range(20):
        bench.alive(7, deaf=True)
        bench.run(bench.now + STEP, 5, 6)
    assert bench.members == [5, 6]


def test_when_nobody_is_left_messages_are_held_and_no_stamp_is_without_members(bench: Bench) -> None:
    bench.run(2.5)
    bench.send("held")
    assert not bench.data() and not bench.said(Stamp)
    assert "nobody of group 'default' is left" in str(bench.machine.waiting_for)
    assert bench.said(SenderAlive)[-1].groups[0].held
    assert any("nobody is left" in event for event in bench.machine.events)


def test_one_that_was_struck_out_is_not_echoed_even_while_nobody_is_left(bench: Bench) -> None:
    bench.run(2.5)
    bench.forget()
    for _ in range(4):
        bench.alive(5, deaf=True)
        bench.run(bench.now + STEP)
    assert [frame.echoes for frame in bench.said(SenderAlive) if frame.echoes] == []


def test_what_was_held_goes_to_whoever_comes(bench: Bench) -> None:
    bench.send("sent")
    bench.run(2.5)
    bench.send("held")
    bench.table(2, 9, 9)
    bench.run(3.0, 9)
    assert bench.members == [9]
    assert bench.bodies() == ["sent", "held"]
    assert bench.headers()[-1].stamp == 2
    assert bench.machine.waiting_for is None
    assert any("somebody is there" in event for event in bench.machine.events)


def test_one_that_says_goodbye_is_out_at_once_and_needs_no_waiting_for(bench: Bench) -> None:
    bench.hear(Goodbye(6, LABEL, GROUP))
    assert bench.members == [5, 7]
    (stamp,) = bench.said(Stamp)
    assert (stamp.groups[0].gone, stamp.groups[0].silent) == ((6,), ())


def test_one_that_leaves_gets_nothing_new_and_is_still_echoed(bench: Bench) -> None:
    bench.alive(6, leaving=True)
    (stamp,) = bench.said(Stamp)
    assert ([m.id for m in stamp.groups[0].members], stamp.groups[0].draining) == ([5, 7], (6,))
    bench.run(1.5, 5, 7)
    assert 6 in {echo.id for echo in bench.said(SenderAlive)[-1].echoes}


def test_when_the_last_one_leaves_the_group_is_held_until_another_comes() -> None:
    bench = with_members(5)
    bench.send("a")
    bench.alive(5, leaving=True)
    assert bench.machine.waiting_for is not None
    assert not bench.said(Stamp)
    bench.hear(Goodbye(5, LABEL, GROUP))
    bench.send("b")
    assert bench.bodies() == ["a"]
    bench.table(2, 9, 9)
    bench.run(1.5, 9)
    assert bench.bodies() == ["a", "b"]
    assert bench.ask(9, LaneQuestion(1, 0, 1, 0)) == [Progress(ME, 77, (answer(0, 0),), ())], "9 inherits at once"


def with_two_groups(**options: Any) -> Bench:
    """5 is all of the default group, and 9 all of the other one."""
    bench = Bench(**options)
    bench.run(0.1)
    bench.table(1, 5, 5)
    bench.table(1, 9, 9, group="audit")
    for _ in range(5):
        bench.alive(9, group="audit")
        bench.run(bench.now + STEP, 5)
    bench.forget()
    return bench


def stamp_of(bench: Bench, group: str) -> int:
    return bench.machine._stamper.groups[group].since


def held(bench: Bench) -> dict[str, bool]:
    return {group.group: group.held for group in bench.said(SenderAlive)[-1].groups}


def test_what_is_sent_while_a_group_is_gone_goes_to_the_other_groups_and_is_kept_for_it() -> None:
    bench = with_two_groups()
    bench.hear(Goodbye(9, LABEL, "audit"))
    assert "'audit'" in str(bench.machine.waiting_for)
    bench.run(bench.now + 3.0, 5)
    bench.send("a", "b")
    assert bench.bodies() == ["a", "b"]
    assert not bench.said(Stamp), "no table without members"
    bench.report(5, done(0, 2, stamp=stamp_of(bench, GROUP)))
    assert (bench.machine.undone, bench.machine.all_done) == (2, False)
    since = stamp_of(bench, "audit")
    bench.run(bench.now + STEP, 5)
    assert held(bench) == {GROUP: False, "audit": True}
    bench.table(2, 8, 8, group="audit")
    bench.alive(8, group="audit")
    bench.run(bench.now + STEP, 5)
    asked = bench.ask(8, LaneQuestion(since, 0, 1, 0), group="audit")
    assert asked == [Progress(ME, 77, (answer(0, 0, stamp=since),), ())], "8 inherits them at once"
    bench.forget()
    bench.nak(8, 1, 2)
    assert bench.headers()


def test_what_is_kept_for_a_group_that_is_gone_is_bounded_and_then_all_wait() -> None:
    bench = with_two_groups(window=limits.FRAME_BYTES_MIN)
    bench.hear(Goodbye(9, LABEL, "audit"))
    sent = 0
    while bench.machine.has_room:
        bench.machine.submit(bench.now, bytes(400))
        bench.machine.flush(bench.now)
        sent += 1
        assert sent < 10
    bench.drain()
    bench.report(5, done(0, bench.machine.last, stamp=stamp_of(bench, GROUP)))
    bench.run(bench.now + 3.0, 5)
    assert not bench.machine.has_room
    assert "'audit'" in str(bench.machine.waiting_for)


def test_while_the_last_of_a_group_still_finish_nothing_new_becomes_theirs() -> None:
    bench = with_two_groups()
    bench.send("before")
    bench.alive(9, group="audit", leaving=True)
    bench.send("held")
    assert bench.bodies() == ["before"]
    bench.run(bench.now + STEP, 5)
    assert held(bench) == {GROUP: False, "audit": True}, "so it knows that it may go"
    bench.hear(Goodbye(9, LABEL, "audit"))
    assert bench.bodies() == ["before", "held"]


def test_one_that_was_the_last_and_died_while_it_finished_holds_up_nobody() -> None:
    bench = with_two_groups()
    bench.alive(9, group="audit", leaving=True)
    bench.send("held")
    assert not bench.bodies()
    bench.run(bench.now + T.expiry + 2 * STEP, 5)
    assert bench.bodies() == ["held"]


def test_the_last_of_a_group_that_is_heard_and_hears_nothing_holds_up_nobody() -> None:
    bench = with_two_groups()
    for _ in range(10):
        bench.alive(9, group="audit", deaf=True)
        bench.run(bench.now + STEP, 5)
    for _ in range(20):
        bench.send(bytes(40_000))
        bench.report(5, done(0, bench.machine.last, stamp=stamp_of(bench, GROUP)), taken=10**9)
        bench.alive(9, group="audit", deaf=True)
    assert len(bench.bodies()) == 20


def test_that_messages_are_held_is_said_when_there_are_some() -> None:
    bench = with_two_groups()
    bench.hear(Goodbye(9, LABEL, "audit"))
    bench.run(bench.now + 1.0, 5)
    said = "group audit: holding messages until somebody is there"
    assert "group audit: nobody is left" in bench.machine.events
    assert said not in bench.machine.events
    bench.send("a", "b")
    bench.run(bench.now + 1.0, 5)
    assert bench.machine.events.count(said) == 1


def test_a_nap_of_its_own_strikes_nobody_out(bench: Bench) -> None:
    bench.now = 31.0
    bench.machine.wake(31.0)
    bench.drain()
    assert bench.members == [5, 6, 7]
    assert bench.machine.waiting_for is None
    bench.run(32.5, 5, 6)
    assert bench.members == [5, 6]


def test_stamps_that_are_no_longer_needed_are_closed_and_told(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.table(2, 5, 5, 6, 7, 8)
    bench.alive(6)
    bench.run(1.3, 5, 6, 7, 8)
    assert (bench.said(SenderAlive)[-1].oldest_stamp, bench.said(SenderAlive)[-1].newest_stamp) == (1, 2)
    bench.report(5, done(0, 3), done(1, 3), done(2, 3))
    bench.run(1.6, 5, 6, 7, 8)
    assert (bench.said(SenderAlive)[-1].oldest_stamp, bench.said(SenderAlive)[-1].newest_stamp) == (2, 2)


def test_who_asks_for_stamps_gets_those_that_are_open(bench: Bench) -> None:
    bench.send("a")
    bench.table(2, 5, 5, 6, 7, 8)
    bench.alive(6)
    bench.forget()
    bench.hear(AskStamps(8, ME, 1, 99))
    assert [stamp.number for stamp in bench.said(Stamp, "at 8")] == [1, 2]
    bench.forget()
    bench.hear(AskStamps(8, ME, 2, 2))
    bench.hear(AskStamps(8, 0xDEF, 1, 1))
    bench.hear(AskStamps(8, ME, 2**40, 2**41))
    assert [stamp.number for stamp in bench.said(Stamp)] == [2]


# --- heirs --------------------------------------------------------------------------------------------------------


LONG = Timings(lease=2.0)
LEASE_OVER = 0.9 + LONG.heir_wait
"""With `with_members` the newest heartbeat of each that was echoed came at 0.9."""


def bereft() -> Bench:
    """5, 6 and 7 were sent 1 to 9; 7 was silent from 0.9 on and is struck out with stamp 2. Lane 2 goes to 6."""
    bench = with_members(5, 6, 7, timings=LONG)
    bench.send(*range(1, 10))
    bench.report(7, done(2, 3))
    bench.run(LEASE_OVER - 0.01, 5, 6)
    assert bench.members == [5, 6]
    return bench


LANE = LaneQuestion(1, 2, 1, 0)


def test_an_heir_is_not_answered_while_the_former_owner_may_hold_its_lease() -> None:
    bench = bereft()
    bench.alive(5, 6)
    assert bench.ask(6, LANE) == []
    bench.now = LEASE_OVER
    assert bench.ask(6, LANE) == [], "nobody has heard the sender since then"


def test_an_heir_is_answered_once_the_lease_is_over_and_another_still_hears_the_sender() -> None:
    bench = bereft()
    bench.run(LEASE_OVER + 0.5, 5, 6)
    assert bench.ask(6, LANE) == [Progress(ME, 77, (answer(2, 4),), ())], "4 is not of lane 2"


def test_an_heir_is_not_answered_while_the_former_owner_may_take_the_stream_for_orphaned() -> None:
    bench = bereft()
    bench.run(0.89 + LONG.orphan_wait, 5, 6, orphaned=True)
    assert bench.ask(6, LANE) == []
    bench.run(0.9 + LONG.orphan_wait, 5, 6, orphaned=True)
    assert len(bench.ask(6, LANE)) == 1


def test_an_heir_is_answered_at_once_if_the_former_owner_knows_that_it_is_out() -> None:
    bench = bereft()
    bench.alive(7, stamp=2)
    assert len(bench.ask(6, LANE)) == 1


def test_an_heir_of_one_that_said_goodbye_is_answered_at_once(bench: Bench) -> None:
    bench.send(*range(1, 10))
    bench.hear(Goodbye(7, LABEL, GROUP))
    assert bench.ask(6, LANE) == [Progress(ME, 77, (answer(2, 0),), ())]


def test_nobody_but_the_heir_is_answered() -> None:
    bench = bereft()
    bench.run(9.0, 5, 6)
    assert bench.ask(5, LANE) == []
    assert bench.ask(7, LANE) == []
    assert bench.ask(99, LANE) == []
    assert bench.ask(6, LANE, group="other") == []
    assert len(bench.ask(6, LANE)) == 1


def test_an_owner_can_have_its_own_progress_confirmed(bench: Bench) -> None:
    bench.send(*range(1, 10))
    bench.report(5, done(0, 6, 9, 9))
    ((lane,),) = [progress.lanes for progress in bench.ask(5, LaneQuestion(1, 0, 1, 0))]
    assert lane.floor >= 9


@pytest.mark.parametrize(
    "odd", [LaneQuestion(7, 0, 1, 0), LaneQuestion(1, 3, 1, 0), LaneQuestion(0, 0, 1, 0), LaneQuestion(1, 2**40, 1, 0)]
)
def test_lanes_that_do_not_exist_are_left_out(bench: Bench, odd: LaneQuestion) -> None:
    bench.send(*range(1, 10))
    assert bench.ask(5, odd) == []
    assert bench.ask(5, odd, LaneQuestion(1, 0, 1, 0)) == [Progress(ME, 77, (answer(0, 0),), ())]


def test_an_heir_is_answered_about_a_lane_that_has_no_messages() -> None:
    """One came and went while nothing was sent: what it owned is nothing, and must not be waited for for ever."""
    bench = with_members(5)
    bench.send("a")
    for counter, coming, going in ((2, 6, 5), (3, 7, 6)):
        bench.hear(Goodbye(going, LABEL, GROUP))
        bench.table(counter, coming, coming)
        bench.run(bench.now + 1.0, coming)
    assert [stamp.at for stamp in bench.said(Stamp, Route.DATA)] == [2, 2]
    ((nothing, something),) = [p.lanes for p in bench.ask(7, LaneQuestion(2, 0, 2, 0), LaneQuestion(1, 0, 1, 0))]
    assert (nothing, something) == (LaneAnswer(2, 0, 2, 1, (), True), answer(0, 0))


def test_what_the_former_owner_still_reports_is_in_the_answer() -> None:
    bench = bereft()
    bench.report(7, done(2, 3, 8, 8))
    bench.run(LEASE_OVER + 0.5, 5, 6)
    ((answer,),) = [progress.lanes for progress in bench.ask(6, LANE)]
    assert answer.floor == 4 and answer.runs == (8, 8)


# --- repair -------------------------------------------------------------------------------------------------------


def test_one_that_asks_is_answered_by_unicast(bench: Bench) -> None:
    bench.send("a")
    bench.send("b")
    bench.send("c")
    original = bench.data()[1][1]
    bench.forget()
    bench.nak(6, 2, 2)
    assert bench.data() == [("at 6", original)]
    assert bench.machine.stats.repaired == 1


def test_one_that_asks_again_is_still_answered_by_unicast(bench: Bench) -> None:
    bench.send("a")
    bench.forget()
    for _ in range(3):
        bench.nak(6, 1, 1)
        bench.now += MANY_ASK_S / 2
    assert [to for to, _ in bench.data()] == ["at 6"] * 3


def test_when_two_ask_the_answer_is_multicast(bench: Bench) -> None:
    bench.send("a")
    bench.forget()
    bench.nak(6, 1, 1)
    bench.now += MANY_ASK_S / 2
    bench.nak(7, 1, 1)
    assert [to for to, _ in bench.data()] == ["at 6", Route.DATA]


def test_when_many_ask_it_is_multicast_once(bench: Bench) -> None:
    bench.send("a")
    bench.forget()
    for receiver in range(100, 150):
        bench.nak(receiver, 1, 1)
        bench.now += MANY_ASK_S / 100
    assert [to for to, _ in bench.data()] == ["at 100", Route.DATA]


def test_two_that_ask_long_after_each_other_are_each_answered_by_unicast(bench: Bench) -> None:
    bench.send("a")
    bench.forget()
    bench.nak(6, 1, 1)
    bench.now += MANY_ASK_S + 0.001
    bench.nak(7, 1, 1)
    assert [to for to, _ in bench.data()] == ["at 6", "at 7"]


def test_only_the_parts_that_are_missing_are_sent_again() -> None:
    bench = with_members(5, frame_bytes=600)
    bench.send(b"x" * 3000)
    parts = [datagram for _, datagram in bench.data(FrameType.FRAGMENT)]
    bench.forget()
    bench.nak(5, parts=(MissingParts(1, (1, 3, 999)),))
    assert bench.data(FrameType.FRAGMENT) == [("at 5", parts[1]), ("at 5", parts[3])]


def test_what_is_done_or_never_was_is_not_sent_again(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.report(5, done(0, 3), done(1, 3), done(2, 3))
    bench.forget()
    bench.nak(6, 1, 3, 50, 60)
    bench.hear(Nak(6, 0xDEF, (1, 3), ()))
    assert not bench.data()


def test_one_nak_is_answered_with_a_bounded_number_of_bytes() -> None:
    bench = with_members(5)
    bench.report(5, taken=0, window=64 * limits.MIB)
    for _ in range(40):
        bench.send(b"x" * 50_000)
    bench.forget()
    bench.nak(5, 1, 40)
    sent = sum(len(datagram) for _, datagram in bench.data())
    assert limits.REPAIR_BYTES_MAX - 60_000 <= sent <= limits.REPAIR_BYTES_MAX


def test_one_with_a_small_window_gets_less_at_once_but_one_frame_always() -> None:
    bench = with_members(5)
    bench.report(5, taken=0, window=300_000)
    for _ in range(5):
        bench.send(b"x" * 50_000)
    bench.report(5, taken=0, window=300_000)
    bench.forget()
    bench.nak(5, 1, 5)
    assert 1 <= len(bench.data()) <= 3
    bench.now += 1.0
    bench.report(5, taken=1, window=10)
    bench.forget()
    bench.nak(5, 1, 5)
    assert len(bench.data()) == 1


def test_the_end_of_the_stream_is_told_when_it_is_quiet_so_that_a_lost_tail_is_noticed(bench: Bench) -> None:
    bench.send("a", "b")
    bench.run(1.0 + TAIL_S + 0.001)
    (tail,) = bench.headers(FrameType.TAIL)
    assert (tail.first, tail.count, tail.position) == (2, 0, bench.headers()[-1].position)
    bench.run(1.9, 5, 6, 7)
    assert 2 <= len(bench.headers(FrameType.TAIL)) <= 7, "further and further apart"
    assert bench.said(SenderAlive)[-1].last == 2


def test_when_all_is_done_nothing_is_told_of_the_end(bench: Bench) -> None:
    bench.send("a")
    bench.report(5, done(0, 1), done(1, 1), done(2, 1))
    bench.run(1.9, 5, 6, 7)
    assert not bench.headers(FrameType.TAIL)


# --- windows ------------------------------------------------------------------------------------------------------


def test_no_more_is_in_flight_than_the_slowest_receiver_can_take(bench: Bench) -> None:
    for _ in range(20):
        bench.send(b"x" * 50_000)
    sent = sum(header.count for header in bench.headers())
    assert bench.headers()[-1].position <= WINDOW_BYTES_FIRST
    assert 3 <= sent <= 5
    assert "slower" in str(bench.machine.waiting_for)
    position = bench.headers()[-1].position
    bench.report(5, taken=position, window=WINDOW_BYTES_FIRST)
    bench.report(6, taken=position, window=WINDOW_BYTES_FIRST)
    assert sum(header.count for header in bench.headers()) == sent, "7 has not taken it yet"
    bench.report(7, taken=position, window=WINDOW_BYTES_FIRST)
    assert sum(header.count for header in bench.headers()) > sent


def test_one_that_is_silent_for_two_heartbeats_no_longer_holds_the_others_back(bench: Bench) -> None:
    for _ in range(20):
        bench.send(b"x" * 50_000)
    sent = len(bench.data())
    bench.run(1.15, 5, 6, taken=10**9, window=10**6)
    assert len(bench.data()) == sent
    bench.run(1.9, 5, 6, taken=10**9, window=10**6)
    assert len(bench.data()) == 20


def test_a_nap_of_its_own_overruns_nobodys_window(bench: Bench) -> None:
    for _ in range(20):
        bench.send(b"x" * 50_000)
    sent = len(bench.data())
    bench.now = 31.0
    bench.machine.wake(31.0)
    bench.drain()
    assert len(bench.data()) == sent


def test_what_is_not_done_is_kept_and_then_sending_has_to_wait() -> None:
    bench = with_members(5, window=100_000)
    assert bench.machine.has_room
    bench.send(b"x" * 50_000)
    assert bench.machine.has_room
    bench.send(b"x" * 50_000)
    assert not bench.machine.has_room
    assert "slower" in str(bench.machine.waiting_for)
    bench.report(5, done(0, 1))
    assert bench.machine.has_room
    assert bench.machine.waiting_for is None


def test_what_nobody_listens_to_yet_is_bounded_in_bytes_and_in_number() -> None:
    bench = Bench(window=100_000)
    bench.machine.submit(0.0, b"x" * 100_000)
    assert not bench.machine.has_room
    many = Bench()
    many.machine.submit_records(make_records([b""] * limits.UNSENT_MESSAGES_MAX))
    assert not many.machine.has_room


def test_a_probe_goes_out_even_when_the_window_is_full_since_what_was_in_flight_may_be_lost(bench: Bench) -> None:
    for _ in range(20):
        bench.send(b"x" * 50_000)
    last = bench.headers()[-1]
    bench.run(1.0 + TAIL_S + 0.001)
    (tail,) = bench.headers(FrameType.TAIL)
    assert tail.first == last.first + last.count - 1, "not of what was never sent"


# --- closing, and what is not for us ------------------------------------------------------------------------------


def test_closing_says_goodbye_and_ends_everything(bench: Bench) -> None:
    bench.machine.close(1.0)
    bench.drain()
    assert set(bench.said(SenderGoodbye, Route.CONTROL)) == {SenderGoodbye(ME, LABEL)}
    assert bench.machine.next_deadline() == math.inf
    bench.forget()
    bench.machine.close(1.1)
    bench.machine.wake(1.2)
    bench.alive(5, 6, 99)
    bench.nak(5, 1, 1)
    assert bench.sent == []
    assert bench.machine.next_deadline() == math.inf
    with pytest.raises(Closed):
        bench.machine.submit(1.3, "late")
    with pytest.raises(Closed):
        bench.machine.submit_records(make_records(["late"]))


def test_a_label_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ValueError, match="label"):
        SenderMachine("", ME, timings=T, random=Random(1), now=0.0, wall_offset=0.0)


def test_frames_of_other_labels_are_ignored_and_not_counted(bench: Bench) -> None:
    frame = Alive(55, "other", GROUP, 1, 1, True, False, 0, NO_VERSION, (), ())
    bench.machine.receive(1.0, encode_control(frame, label_tag("other")), "x")
    bench.machine.receive(1.0, encode_control(frame, TAG), "x")  # the same tag by chance, and another label
    bench.machine.receive(1.0, encode_control(SenderGoodbye(3, LABEL), TAG), "x")
    bench.drain()
    assert bench.sent == []
    assert bench.machine.stats.bad_frames == 0


def test_the_silence_of_the_first_stamp_is_of_nobody() -> None:
    bench = Bench()
    bench.run(0.1)
    bench.table(1, 5, 5, 6)
    bench.run(0.4, 5, 6)
    (stamp,) = bench.said(Stamp)
    empty: tuple[Silence, ...] = ()
    assert (stamp.groups[0].silent, stamp.groups[0].gone) == (empty, ())


@given(st.binary(max_size=200))
def test_garbage_is_counted_and_never_raises(datagram: bytes) -> None:
    bench = with_members_cached()
    stats = bench.machine.stats
    before = stats.bad_frames + stats.strangers
    bench.machine.receive(bench.now, datagram, "a stranger")
    assert stats.bad_frames + stats.strangers == before + 1
    assert bench.machine.take_outgoing() == []


_cached: list[Bench] = []


def with_members_cached() -> Bench:
    if not _cached:
        _cached.append(with_members(5, 6, 7))
    return _cached[0]


def real_frames() -> list[bytes]:
    """One of each that a sender understands, as a receiver would send them."""
    frames: Iterable[Control] = (
        Alive(5, LABEL, GROUP, 1, 999, True, False, 0, Version(1, 5), (Heard(ME, 3, 1, False, False),), ()),
        Alive(
            6, LABEL, GROUP, 1, 999, False, True, 7, Version(2, 5), (), (StreamReport(ME, 50, 60, (done(1, 2, 5, 6),)),)
        ),
        TableFrame(5, LABEL, GROUP, Version(2, 5), (Member(5, 1), Member(6, 2)), (7,)),
        Report(5, StreamReport(ME, 5000, 6000, (done(0, 3), done(2, 0, 2, 2, 5, 8)))),
        Nak(5, ME, (1, 2, 4, 9), (MissingParts(3, (0, 1, 2)),)),
        AskStamps(5, ME, 1, 3),
        AskProgress(5, ME, GROUP, 12345, (LaneQuestion(1, 0, 1, 0), LaneQuestion(1, 2, 1, 0))),
        HandOver(5, ME, GROUP, 1, 0, 6, 7, 1),
        Goodbye(7, LABEL, GROUP),
    )
    return [encode_control(frame, TAG) for frame in frames]


def mutated(random: Random, datagram: bytes) -> bytes:
    """A few bytes changed, cut off or put in."""
    changed = bytearray(datagram)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(changed)) if changed else 0
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del changed[at : at + random.randint(1, 8)]
            case 2:
                changed[at:at] = random.randbytes(random.randint(1, 8))
            case 3:
                changed[at : at + 1] = bytes([random.choice((0x00, 0x7F, 0x90, 0xC0, 0xCF, 0xFF))])
    return bytes(changed)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_real_frames_with_a_few_bytes_changed_never_raise_nor_break_its_invariants(seed: int) -> None:
    random = Random(seed)
    bench = with_members(5, 6, 7)
    bench.send(*range(9))
    bench.send("k", key="k")
    frames = real_frames()
    for _ in range(30):
        bench.now += 0.01
        bench.machine.receive(bench.now, mutated(random, random.choice(frames)), "a stranger")
        bench.machine.check_invariants()
        bench.machine.take_outgoing()
    bench.machine.wake(bench.now)
    bench.machine.check_invariants()


# --- keys across switches -----------------------------------------------------------------------------------------


def shards_of(bench: Bench, group: str = GROUP) -> dict[int, int]:
    """What the newest heartbeat says of the shards."""
    (state,) = (state for state in bench.said(SenderAlive)[-1].groups if state.group == group)
    return {stamp: numbers_to_bits(bits) for stamp, bits in state.shards}


def keyed(bench: Bench, *keys: str, delay: float | None = None) -> None:
    for key in keys:
        bench.machine.submit(bench.now, key, key=key, delay=delay)
    bench.machine.flush(bench.now)
    bench.drain()


def bit(key: str) -> int:
    return 1 << shard_of(key)


def test_while_nothing_older_is_open_a_heartbeat_says_nothing_of_shards() -> None:
    bench = with_members(5)
    keyed(bench, "x", "y")
    bench.run(1.5, 5)
    assert shards_of(bench) == {}


def test_after_a_switch_shards_are_let_go_one_by_one_and_at_once() -> None:
    bench = with_members(5)
    keyed(bench, "x", "y")
    bench.table(2, 5, 5, 6)
    bench.run(1.5, 5, 6)
    segment = bench.stamp
    assert shards_of(bench) == {segment: ALL & ~bit("x") & ~bit("y")}
    bench.forget()
    bench.report(5, done(0, 0, 2, 2, stamp=segment - 1))
    bench.run(bench.now + PROMPT_S)
    assert shards_of(bench) == {segment: ALL & ~bit("x")}, "without waiting for the next heartbeat"


def test_the_lane_of_a_dead_one_that_had_no_messages_keeps_nothing_open() -> None:
    """With keys only its receiver can say that none of them is its own, and its heir that much later."""
    bench = with_members(5, 6)
    keyed(bench, *(key for key in map(str, range(20)) if deal_slot(key, 5, 6) == 0))
    last = bench.machine.last
    assert last
    bench.report(5, done(0, last, stamp=bench.stamp))
    assert (bench.machine.undone, bench.machine.all_done) == (0, False)
    bench.run(bench.now + 0.5, 5)
    assert bench.machine.all_done and bench.machine.stats.acked == last


def deal_slot(key: str, *ids: int) -> int:
    """Whose a key is in the first table of these."""
    return draft(tuple(Member(id, 1) for id in ids))[shard_of(key)]


def test_a_message_with_a_due_time_holds_no_key_up() -> None:
    bench = with_members(5)
    keyed(bench, "x", delay=3600.0)
    keyed(bench, "y")
    bench.table(2, 5, 5, 6)
    bench.run(1.5, 5, 6)
    assert shards_of(bench) == {bench.stamp: ALL & ~bit("y")}


def test_what_waits_in_a_middle_segment_is_let_go_after_the_next_switch_too() -> None:
    """A message with a due time keeps the first segment open. `x` of the second one waits for nothing but its gate."""
    bench = with_members(5)
    keyed(bench, "z", delay=3600.0)
    keyed(bench, "x")
    bench.table(2, 5, 5, 6)
    bench.run(1.5, 5, 6)
    second = bench.stamp
    keyed(bench, "x")
    bench.table(3, 5, 5, 6, 7)
    bench.run(2.5, 5, 6, 7)
    third = bench.stamp
    assert second < third
    assert shards_of(bench) == {third: ALL & ~bit("x")}
    bench.report(5, done(0, 0, 2, 2, stamp=second - 1))
    bench.run(2.6, 5, 6, 7)
    assert shards_of(bench) == {second: bit("x"), third: ALL & ~bit("x")}
    for slot in range(2):
        bench.report(5 + slot, done(slot, 3, stamp=second))
    bench.run(2.7, 5, 6, 7)
    assert shards_of(bench) == {third: ALL}


def test_the_switch_of_one_group_closes_no_gate_of_another() -> None:
    bench = Bench()
    bench.run(0.1)
    bench.table(1, 5, 5)
    bench.table(1, 8, 8, group="other")
    for _ in range(5):
        bench.alive(8, group="other")
        bench.run(bench.now + 0.2, 5)
    keyed(bench, "z", delay=3600.0)
    bench.table(2, 8, 8, 9, group="other")
    for _ in range(3):
        bench.alive(8, 9, group="other")
        bench.run(bench.now + 0.2, 5)
    keyed(bench, "x")
    bench.table(2, 5, 5, 6)
    bench.run(bench.now + 0.5, 5, 6)
    bench.alive(8, 9, group="other")
    assert bench.members == [5, 6]
    assert set(shards_of(bench, "other").values()) == {ALL}, "x is of its newest segment"
    assert set(shards_of(bench).values()) == {ALL & ~bit("x")}


def test_a_heartbeat_tells_of_a_few_segments_and_of_others_the_next_time() -> None:
    bench = with_members(5)
    keyed(bench, "z", delay=3600.0)
    many = limits.GATES_MAX + 3
    for counter in range(2, 2 + many):
        keyed(bench, f"key {counter}")
        bench.table(counter, 5, 5, 5 + counter % 2 + 1)
        bench.run(bench.now + 0.5, 5, 6, 7)
    seen: set[int] = set()
    for _ in range(3 * many):
        bench.forget()
        bench.run(bench.now + 0.2, 5, 6, 7)
        said = shards_of(bench)
        assert len(said) <= limits.GATES_MAX and bench.stamp in said
        seen |= said.keys()
    assert len(seen) == many


# --- tries, parts, and what is released ---------------------------------------------------------------------------


def test_tries_are_remembered_by_the_highest_count_and_the_first_owner() -> None:
    bench = with_members(5, 6)
    bench.send(*range(1, 5))
    for tried in (Tried(2, 1, 6), Tried(2, 3, 5), Tried(2, 2, 6), Tried(99, 1, 6)):
        bench.hear(Report(6, StreamReport(ME, 0, 10**6, (), (tried,))))
    (answer_,) = bench.ask(6, LaneQuestion(1, 1, 1, 0), LaneQuestion(1, 0, 1, 0))
    assert answer_.tried == (), "2 is not of a lane that it owns"
    (answer_,) = bench.ask(5, LaneQuestion(1, 0, 1, 0))
    assert answer_.tried == (Tried(2, 3, 6),)
    bench.report(5, done(0, 2))
    (answer_,) = bench.ask(5, LaneQuestion(1, 0, 1, 0))
    assert answer_.tried == (), "it is done"


def test_an_heir_is_told_of_all_that_was_tried_before_it_may_start() -> None:
    bench = with_members(5)
    bench.send(*range(1, 601))
    sequences = list(range(1, 601))
    for start in range(0, 600, limits.REPORT_TRIED_MAX):
        tried = tuple(Tried(sequence, 1, 5) for sequence in sequences[start : start + limits.REPORT_TRIED_MAX])
        bench.hear(Report(5, StreamReport(ME, 0, 10**6, (), tried)))
    frames = bench.ask(5, LaneQuestion(1, 0, 1, 0))
    assert [one.sequence for frame in frames for one in frame.tried] == sequences
    assert [len(frame.lanes) for frame in frames] == [0, 0, 1]


def test_answers_about_many_lanes_with_many_runs_come_in_frames_that_fit() -> None:
    bench = with_members(5)
    version, members = Version(2, 5), (Member(5, 64),)
    bench.hear(TableFrame(5, LABEL, GROUP, version, members, ()))
    bench.versions[5] = version
    bench.run(2.0, 5)
    bench.machine.submit_records(make_records([b""] * 60_000))
    bench.machine.flush(bench.now)
    for slot in range(64):
        firsts = range(slot + 128, 60_000 - 64, 128)
        bench.report(5, done(slot, 0, *(end for first in firsts[:250] for end in (first, first)), stamp=bench.stamp))
    frames = bench.ask(5, *(LaneQuestion(bench.stamp, slot, 1, 0) for slot in range(64)))
    assert len(frames) == PROGRESS_FRAMES_MAX
    assert all(len(encode_control(frame, TAG)) < limits.DATAGRAM_BYTES_MAX // 2 for frame in frames)
    slots = [lane.slot for frame in frames for lane in frame.lanes]
    assert slots == list(range(len(slots))) and len(slots) >= 32, "the others are asked for again"


def test_what_is_done_behind_one_that_is_not_is_let_go_when_memory_is_short() -> None:
    bench = with_members(5, window=200_000)
    for number in range(4):
        bench.machine.submit(bench.now, bytes(30_000))
        bench.machine.flush(bench.now)
        bench.now += 0.001 * number
    bench.drain()
    before = bench.machine._frames.bytes
    bench.report(5, done(0, 0, 2, 4))
    assert bench.machine._frames.bytes < before // 2
    assert bench.machine.undone == 1
    bench.forget()
    bench.nak(5, 1, 4)
    assert [header.first for header in bench.headers()] == [1], "nobody needs the others"


# --- giving a group up --------------------------------------------------------------------------------------------


def test_a_group_of_which_nobody_comes_back_is_given_up_after_a_while() -> None:
    bench = with_members(5, hold=3.0)
    bench.send("a", "b", "c")
    bench.report(5, done(0, 1, 3, 3))
    bench.run(1.5, 5)
    bench.hear(Goodbye(5, LABEL, GROUP))
    bench.send("d")
    bench.run(4.4)
    assert bench.machine.stats.lost == 0
    bench.run(5.0)
    machine = bench.machine
    assert (machine.stats.lost, machine.stats.acked, machine.undone) == (1, 2, 1), "b is lost, d was never sent"
    assert any("gave up 1 messages" in event for event in machine.events)
    bench.table(2, 6, 6)
    bench.forget()
    bench.run(6.5, 6)
    assert bench.bodies() == ["d"]
    bench.report(6, done(0, 4, stamp=bench.stamp))
    assert machine.all_done


@pytest.mark.parametrize("leaving", [True, False], ids=["one that leaves", "one that has just come"])
def test_a_group_is_not_given_up_while_one_of_it_is_there_without_a_table(leaving: bool) -> None:
    bench = with_members(5, hold=1.0)
    bench.send("a")
    bench.table(2, 5, draining=(5,))
    bench.run(1.5, 5, leaving=True)
    bench.send("b")
    there = 5 if leaving else 6
    if not leaving:
        bench.hear(Goodbye(5, LABEL, GROUP))
    bench.run(6.0, there, leaving=leaving)
    assert (bench.machine.stats.lost, bench.machine.undone) == (0, 2)
    bench.hear(Goodbye(there, LABEL, GROUP))
    bench.run(6.5)
    assert (bench.machine.stats.lost, bench.machine.undone) == (1, 1), "b was never sent"


def test_frames_that_still_wait_for_receivers_go_with_the_last_group() -> None:
    bench = with_members(5, hold=2.0)
    for _ in range(20):
        bench.machine.submit(bench.now, bytes(40_000))
    bench.machine.flush(bench.now)
    bench.drain()
    assert bench.machine._outbox
    bench.hear(Goodbye(5, LABEL, GROUP))
    bench.run(4.0)
    bench.forget()
    bench.table(2, 6, 6)
    bench.run(6.0, 6, taken=10**9)
    assert not bench.machine._outbox
    firsts = [header.first for header in bench.headers()]
    (stamp,) = (stamp for stamp in bench.said(Stamp) if stamp.groups)
    assert firsts and min(firsts) == stamp.at, "nothing from before"


def test_the_other_groups_go_on_when_one_is_given_up() -> None:
    bench = with_two_groups(hold=2.0)
    bench.send("a")
    bench.hear(Goodbye(9, LABEL, "audit"))
    bench.send("b")
    bench.run(bench.now + 1.5, 5)
    bench.report(5, done(0, 2, stamp=stamp_of(bench, GROUP)))
    assert (bench.machine.undone, bench.machine.stats.lost) == (2, 0)
    bench.run(bench.now + 1.0, 5)
    assert bench.bodies() == ["a", "b"]
    assert bench.machine.stats.lost == 2
    (entry,) = bench.said(Stamp)[-1].groups
    assert entry.group == GROUP
    assert bench.machine.all_done


def test_a_senders_own_nap_is_no_time_in_which_nobody_came_back() -> None:
    bench = with_members(5, hold=3.0)
    bench.send("a")
    bench.hear(Goodbye(5, LABEL, GROUP))
    bench.run(1.5)
    bench.now += 10.0
    bench.machine.wake(bench.now)
    bench.run(bench.now + 0.5)
    assert bench.machine.stats.lost == 0


# --- handing over -------------------------------------------------------------------------------------------------


def moves(bench: Bench) -> list[tuple[Moved, ...]]:
    return [stamp.groups[0].moved for stamp in bench.said(Stamp)]


@pytest.fixture
def given(bench: Bench) -> Bench:
    """1 to 12 were sent; lane 0 has 3, 6, 9 and 12, and its owner 5 gives what begins at 9 to 6."""
    bench.send(*range(1, 13))
    bench.forget()
    bench.hear(HandOver(5, ME, GROUP, 1, 0, 9, 6, 1))
    return bench


def test_what_an_owner_hands_over_is_stamped_as_the_others(given: Bench) -> None:
    (stamp,) = given.said(Stamp, Route.DATA)
    assert (stamp.number, stamp.at, stamp.groups[0].moved) == (2, 13, (Moved(1, 0, 9, 6),))
    assert [member.id for member in stamp.groups[0].members] == [5, 6, 7]


def test_the_next_stamp_moves_nothing_again(given: Bench) -> None:
    given.forget()
    given.hear(Goodbye(7, LABEL, GROUP))
    assert moves(given) == [()]


def test_the_new_owner_is_answered_at_once_and_the_old_one_only_of_what_it_kept(given: Bench) -> None:
    given.report(5, done(0, 3))
    part = LaneQuestion(1, 0, 9, 0)
    assert given.ask(6, part) == [Progress(ME, 77, (LaneAnswer(1, 0, 9, 5, (), True),), ())]
    assert given.ask(5, part) == [] and given.ask(6, LaneQuestion(1, 0, 1, 0)) == []
    assert len(given.ask(5, LaneQuestion(1, 0, 1, 0))) == 1


def test_a_request_that_comes_again_changes_nothing(given: Bench) -> None:
    given.forget()
    given.hear(HandOver(5, ME, GROUP, 1, 0, 9, 6, 1))
    given.hear(HandOver(5, ME, GROUP, 1, 0, 9, 7, 2))
    assert moves(given) == []


def test_what_was_meant_for_one_that_is_not_there_is_the_owners_again(bench: Bench) -> None:
    bench.send(*range(1, 13))
    bench.hear(Goodbye(6, LABEL, GROUP))
    bench.forget()
    bench.hear(HandOver(5, ME, GROUP, 1, 0, 9, 6, 1))
    assert moves(bench) == [(Moved(1, 0, 9, 5),)]


@pytest.mark.parametrize(
    "odd",
    [
        HandOver(6, ME, GROUP, 1, 0, 9, 7, 1),
        HandOver(99, ME, GROUP, 1, 0, 9, 7, 1),
        HandOver(5, ME, "other", 1, 0, 9, 6, 1),
        HandOver(5, ME, GROUP, 7, 0, 9, 6, 1),
        HandOver(5, ME, GROUP, 1, 3, 9, 6, 1),
        HandOver(5, ME, GROUP, 1, 0, 0, 6, 1),
        HandOver(5, ME + 1, GROUP, 1, 0, 9, 6, 1),
    ],
)
def test_nobody_gives_what_is_not_its_own(bench: Bench, odd: HandOver) -> None:
    bench.send(*range(1, 13))
    bench.forget()
    bench.hear(odd)
    assert moves(bench) == []


def test_a_lane_with_keys_is_not_handed_over(bench: Bench) -> None:
    bench.send(*range(1, 13), key="k")
    bench.forget()
    for slot in range(3):
        bench.hear(HandOver((5, 6, 7)[slot], ME, GROUP, 2, slot, 9, 6, 2))
    assert moves(bench) == []


def test_a_request_from_before_its_lane_was_lost_does_not_count_when_the_lane_is_back() -> None:
    """7 loses lane 2 to 6, and has it again when 5 and 6 are gone: it may be at it from 8 on."""
    bench = bereft()
    ask = HandOver(7, ME, GROUP, 1, 2, 8, 5, 1)
    bench.hear(ask)
    assert moves(bench)[-1:] != [(Moved(1, 2, 8, 5),)], "it is 6's now"
    bench.run(bench.now + 8.0, 5, 6, 7)
    bench.hear(Goodbye(5, LABEL, GROUP))
    bench.hear(Goodbye(6, LABEL, GROUP))
    assert bench.members == [7]
    bench.forget()
    bench.hear(ask)
    assert moves(bench) == []
    bench.hear(HandOver(7, ME, GROUP, 1, 2, 8, 5, bench.stamp))
    assert moves(bench) == [(Moved(1, 2, 8, 7),)]
