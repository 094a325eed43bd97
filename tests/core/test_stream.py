"""One stream as one receiver follows it: stamps, lanes, lease, and what is asked and said. Times are numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import pytest

from rvq import limits
from rvq.core.handover import OPEN_STAMPS_MAX
from rvq.core.lease import Beats
from rvq.core.machine import Address, Wall
from rvq.core.membership import Peer
from rvq.core.runs import DoneRuns
from rvq.core.stamps import Stamper
from rvq.core.stats import Stats
from rvq.core.stream import ASK_S_MAX, ASK_S_MIN, CONTROL_GAP_S, FORGET_S, Question, Stream
from rvq.errors import WireError
from rvq.timings import Timings
from rvq.wire.batch import Stamped, encode_batch, encode_tail
from rvq.wire.codec import DATA_HEADER, encode_control, read_data_header
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import (
    NO_VERSION,
    AskProgress,
    AskStamps,
    Control,
    Echo,
    GroupState,
    HandOver,
    Heard,
    LaneAnswer,
    LaneKey,
    LaneProgress,
    LaneQuestion,
    Member,
    Moved,
    Nak,
    Progress,
    Report,
    SenderAlive,
    ShardsDone,
    Silence,
    Stamp,
    Tried,
    Version,
    label_tag,
)
from rvq.wire.records import make_record, make_records

T = Timings()
SENDER, ME = 0xABC, 5
GROUP = "default"
TAG = label_tag("work")
HERE = "the sender"

F = TypeVar("F")


class Bench:
    """One stream at receiver 5, and what its sender would send. Since 0.0 there is nobody else to ask."""

    def __init__(self, *, was_forgotten: bool = False, tracked: bool = False) -> None:
        self.now = 0.0
        self.said: list[tuple[Address, Control]] = []
        self.told: list[str] = []
        self.stats = Stats()
        self.beats = Beats()
        self.stamper = Stamper(SENDER, "work")
        self.peers: dict[int, Peer] = {}
        self.beat_number = 0
        self.last = 0
        self.stream = Stream(
            SENDER,
            label="work",
            group=GROUP,
            me=ME,
            address=HERE,
            timings=T,
            random=Random(1),
            stats=self.stats,
            beats=self.beats,
            send=lambda target, frame: self.said.append((target, frame)),
            tell=self.told.append,
            settler=None,
            wall=Wall(0.0),
            tracked=tracked,
            was_forgotten=was_forgotten,
            now=0.0,
        )

    # What the sender says.

    def switch(self, *ids: int, silent: tuple[Silence, ...] = (), gone: tuple[int, ...] = ()) -> Stamp:
        members = tuple(Member(id, 1) for id in ids)
        return self.stamper.switch(self.last + 1, GROUP, Version(1, 5), members, (), silent, gone)

    def stamp(self, *ids: int, **how: Any) -> None:
        """A switch, and it is heard."""
        self.hear(self.switch(*ids, **how))

    def hear(self, stamp: Stamp) -> None:
        self.stream.on_stamp(self.now, stamp)
        self.stream.check_invariants()

    def frame(self, *bodies: Any, done_to: int = 0) -> bytes:
        """The next frame of the stream."""
        records = make_records(list(bodies))
        first, self.last = self.last + 1, self.last + len(bodies)
        datagram = encode_batch(Stamped(TAG, self.stamper.newest, SENDER, first, 0.0, done_to, 0), records)
        position = (100 * self.last).to_bytes(8, "big")
        return datagram[: DATA_HEADER.size - 8] + position + datagram[DATA_HEADER.size :]

    def take_in(self, *datagrams: bytes) -> None:
        for datagram in datagrams:
            self.stream.on_data(self.now, read_data_header(datagram), datagram)
            self.stream.check_invariants()

    def tail(self) -> None:
        self.take_in(encode_tail(Stamped(TAG, self.stamper.newest, SENDER, self.last, 0.0, 0, 100 * self.last)))

    def beat(
        self,
        *,
        echo: bool = True,
        done_to: int = 0,
        counter: int | None = None,
        held: bool = False,
        group: str = GROUP,
        shards: tuple[ShardsDone, ...] = (),
    ) -> None:
        """The sender's heartbeat. With an echo of the newest of ours."""
        self.beat_number = counter or self.beat_number + 1
        frame = SenderAlive(
            SENDER,
            "work",
            self.beat_number,
            hello=False,
            last=self.last,
            position=100 * self.last,
            oldest_stamp=self.stamper.oldest,
            newest_stamp=self.stamper.newest,
            groups=(GroupState(group, Version(1, 5), done_to, held, shards),),
            echoes=(Echo(ME, self.beats.counter), Echo(77, 999)) if echo else (),
        )
        self.stream.on_alive(self.now, frame)
        self.stream.check_invariants()

    def answer(self, *lanes: LaneAnswer, nonce: int | None = None, tried: tuple[Tried, ...] = ()) -> None:
        asked = self.all(AskProgress)[-1].nonce if nonce is None else nonce
        self.stream.on_progress(self.now, Progress(SENDER, asked, lanes, tried))
        self.stream.check_invariants()

    # What is said and done here.

    def run(self, until: float, *, beats: bool = False) -> None:
        """Wake it whenever it asks for it; with heartbeats of the sender, and echoes, every 0.2 s."""
        beat_at = self.now if beats else math.inf
        while (due := min(beat_at, max(self.now, self.stream.next_deadline()))) <= until:
            self.now = due
            if due == beat_at:
                self.beats.beat(self.now)
                self.beat()
                beat_at += 0.2
            self.stream.wake(self.now, self.peers)
            self.stream.check_invariants()
        self.now = until
        self.stream.wake(self.now, self.peers)

    def all(self, kind: type[F]) -> list[F]:
        return [frame for _, frame in self.said if isinstance(frame, kind)]

    def start(self) -> list[Any]:
        """The bodies of what may start now."""
        return [m.body for m in self.stream.work.take(self.now, 999)] if self.stream.lease.holds(self.now) else []

    def missing(self) -> list[int]:
        """All that was asked for in NAKs."""
        runs = [run for nak in self.all(Nak) for run in zip(nak.runs[::2], nak.runs[1::2], strict=True)]
        return sorted({q for first, last in runs for q in range(first, last + 1)})

    def peer(self, id: int, *, silent: bool = True, counter: int | None = None, stamp: int | None = None) -> None:
        """Another receiver, as its last heartbeat told."""
        newest = self.stream.log.complete_to if stamp is None else stamp
        heard = Heard(SENDER, self.stream.counter if counter is None else counter, newest, silent, silent)
        self.peers[id] = Peer(id, f"at {id}", 1, 1, NO_VERSION, False, 0, math.inf, {SENDER: heard})


@pytest.fixture
def bench() -> Bench:
    """Stamp 1 has 5 and 6, so the even sequences are ours. There is a lease until 1.0."""
    bench = Bench()
    bench.stamp(5, 6)
    bench.beats.beat(0.0)
    bench.beat()
    return bench


# --- questions ----------------------------------------------------------------------------------------------------


def test_a_question_is_repeated_with_growing_pauses_until_it_is_answered() -> None:
    question = Question()
    assert question.at == math.inf
    question.want(5.0)
    question.want(4.0)
    assert question.at == 5.0, "it is wanted already"
    pauses = []
    for _ in range(8):
        before = question.at
        question.asked(before)
        pauses.append(question.at - before)
    assert pauses == sorted(pauses)
    assert [pauses[0], pauses[-1]] == pytest.approx([ASK_S_MIN, ASK_S_MAX])
    question.answered()
    assert question.at == math.inf
    question.want(9.0)
    question.asked(9.0)
    assert question.at == 9.0 + ASK_S_MIN


# --- stamps -------------------------------------------------------------------------------------------------------


def test_a_frame_with_an_unknown_stamp_is_kept_and_the_stamp_asked_for(bench: Bench) -> None:
    later = bench.switch(5)
    bench.take_in(bench.frame("a", "b"))
    assert bench.start() == []
    bench.run(0.01)
    assert bench.all(AskStamps) == [AskStamps(ME, SENDER, 2, 2)]
    assert bench.said[0][0] == HERE
    bench.hear(later)
    assert bench.start() == ["a", "b"]
    asked = len(bench.all(AskStamps))
    bench.run(0.9)
    assert len(bench.all(AskStamps)) == asked, "it was answered"


def test_nothing_is_guessed_while_a_stamp_is_missing_in_between(bench: Bench) -> None:
    second = bench.switch(6, 7)
    third = bench.switch(5, 6)
    bench.take_in(bench.frame("a", "b"))
    bench.hear(third)
    assert bench.start() == []
    bench.run(0.1)
    assert bench.all(AskStamps)[0] == AskStamps(ME, SENDER, 2, 3)
    bench.hear(second)
    assert bench.start() == ["b"]


def test_only_so_many_frames_are_kept_for_unknown_stamps(bench: Bench) -> None:
    later = bench.switch(5)
    for n in range(limits.UNKNOWN_FRAMES_MAX + 20):
        bench.take_in(bench.frame(n))
    bench.hear(later)
    assert len(bench.start()) == limits.UNKNOWN_FRAMES_MAX
    bench.tail()
    bench.run(0.1)
    assert len(bench.missing()) == 20


def test_a_bad_fragment_with_an_unknown_stamp_does_not_stop_what_the_stamp_brings(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 11)))
    later = bench.switch(5, silent=(Silence(6, 99.0),))
    (part,) = encode_fragments(Stamped(TAG, 2, SENDER, 11, 0.0, 0, 0), make_record(b"x"), 512)
    bench.take_in(part[:60])
    bench.take_in(bench.frame("after"))
    bench.hear(later)
    assert bench.stats.bad_frames == 1
    assert bench.start() == [2, 4, 6, 8, 10, "after"]
    bench.run(0.1)
    assert bench.all(AskProgress), "what is inherited is still asked for"


def test_a_bad_fragment_is_refused(bench: Bench) -> None:
    (part,) = encode_fragments(Stamped(TAG, 1, SENDER, 1, 0.0, 0, 0), make_record(b"x"), 512)
    with pytest.raises(WireError):
        bench.take_in(part[:60])


def test_a_heartbeat_tells_of_stamps_that_were_missed(bench: Bench) -> None:
    bench.switch(5)
    bench.beat()
    bench.run(0.01)
    assert bench.all(AskStamps) == [AskStamps(ME, SENDER, 2, 2)]


# --- leases -------------------------------------------------------------------------------------------------------


def test_nothing_starts_without_a_lease() -> None:
    bench = Bench()
    bench.stamp(5)
    bench.take_in(bench.frame("a"))
    assert bench.stream.work.ready
    assert not bench.stream.may_start(0.0, 1)
    bench.beats.beat(0.0)
    bench.beat()
    assert bench.stream.may_start(0.0, 1)
    assert bench.start() == ["a"]


def test_a_lease_counts_from_when_the_echoed_heartbeat_was_sent(bench: Bench) -> None:
    bench.beats.beat(0.5)
    bench.now = 1.4
    bench.beat()
    assert bench.stream.lease.holds(1.499)
    assert not bench.stream.lease.holds(1.5)


def test_an_echo_counts_only_once_every_open_stamp_up_to_its_heartbeats_is_known(bench: Bench) -> None:
    later = bench.switch(5)
    bench.now = 0.9
    bench.beats.beat(0.9)
    bench.beat()
    assert not bench.stream.lease.holds(1.0)
    bench.hear(later)
    assert bench.stream.lease.holds(1.0)


def test_an_echo_of_another_receiver_is_not_mine(bench: Bench) -> None:
    bench.now = 0.9
    bench.beats.beat(0.9)
    bench.beat(echo=False)
    assert not bench.stream.lease.holds(1.0)


def test_a_late_heartbeat_of_the_sender_renews_nothing(bench: Bench) -> None:
    bench.beats.beat(0.3)
    bench.beat()
    frame = SenderAlive(SENDER, "work", 1, False, 0, 0, 1, 1, (), (Echo(ME, 1),))
    bench.stream.on_alive(5.0, frame)
    assert bench.stream.lease.until == pytest.approx(1.3)
    assert bench.stream.is_silent(5.0), "an old heartbeat is no sign of life"


# --- messages -----------------------------------------------------------------------------------------------------


def test_only_the_own_messages_start(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3, 4, 5))
    assert [bench.stream.may_start(0.0, q) for q in range(1, 7)] == [False, True, False, True, False, False]
    assert bench.start() == [2, 4]


def test_a_frame_that_comes_again_is_a_duplicate(bench: Bench) -> None:
    datagram = bench.frame(1, 2)
    bench.take_in(datagram, datagram)
    assert bench.stats.duplicates == 1
    assert bench.start() == [2]


def test_what_is_done_in_the_group_is_let_go_and_not_started(bench: Bench) -> None:
    datagram = bench.frame(1, 2)
    bench.take_in(datagram)
    bench.beat(done_to=2)
    assert bench.start() == []
    assert bench.stream.holding.bytes == 0
    bench.take_in(datagram)
    assert bench.start() == [] and bench.stats.duplicates == 1


def test_what_is_done_in_another_group_is_not_done_here(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.beat(done_to=2, group="other")
    assert bench.start() == [2]


def test_an_unreadable_frame_is_counted_and_asked_for_again(bench: Bench) -> None:
    good = bench.frame(1, 2)
    bench.take_in(good[:-1])
    assert bench.start() == []
    bench.stream.ask_again_for_spoilt(bench.now)
    assert bench.stats.bad_frames == 1
    bench.run(0.01)
    assert bench.missing() == [1, 2]
    bench.take_in(good)
    assert bench.start() == [2]


# --- gaps ---------------------------------------------------------------------------------------------------------


def test_a_gap_is_asked_for(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    lost = bench.frame(3, 4)
    bench.take_in(bench.frame(5, 6))
    bench.run(0.01)
    assert bench.missing() == [3, 4]
    bench.take_in(lost)
    bench.said.clear()
    bench.run(0.9)
    assert bench.missing() == []
    assert sorted(bench.start()) == [2, 4, 6]


def test_what_cannot_be_mine_is_not_asked_for(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.frame(3)
    bench.take_in(bench.frame(4))
    bench.run(0.9)
    assert bench.missing() == []


def test_one_that_is_not_in_the_stamp_asks_for_nothing() -> None:
    bench = Bench()
    bench.stamp(6, 7)
    bench.frame(*range(20))
    bench.take_in(bench.frame(21))
    bench.beat()
    bench.run(0.5)
    assert bench.missing() == []


def test_with_keys_everything_may_be_mine_and_is_asked_for() -> None:
    bench = Bench()
    bench.hear(bench.switch(5, 6))
    bench.hear(bench.stamper.switch_to_keys(1, {GROUP: (0, 1) * 512}))
    bench.frame(1)
    bench.take_in(bench.frame(2))
    bench.run(0.1)
    assert bench.missing() == [1]


def test_a_lost_tail_is_noticed_by_a_probe(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.frame(3, 4)
    bench.tail()
    bench.run(0.01)
    assert bench.missing() == [3, 4]


def test_a_lost_tail_is_noticed_by_a_heartbeat_which_may_have_overtaken_the_data(bench: Bench) -> None:
    late = bench.frame(1, 2)
    bench.beat()
    bench.run(CONTROL_GAP_S * 0.4)
    assert bench.missing() == []
    bench.run(CONTROL_GAP_S * 1.6)
    assert bench.missing() == [1, 2]
    bench.take_in(late)
    assert bench.start() == [2]


def test_a_joiner_asks_for_nothing_from_before_its_stamp() -> None:
    bench = Bench()
    first = bench.switch(6)
    bench.frame(*range(10))
    second = bench.switch(5, 6)
    bench.hear(first)
    bench.hear(second)
    bench.take_in(bench.frame(11, 12))
    bench.beat()
    bench.run(0.5)
    assert bench.missing() == []


def test_while_the_sender_is_silent_the_others_are_asked(bench: Bench) -> None:
    bench.frame(1, 2)
    bench.tail()
    bench.peer(6)
    bench.run(0.55)
    assert {target for target, frame in bench.said if isinstance(frame, Nak)} == {HERE}
    bench.said.clear()
    bench.run(2.0)
    assert {target for target, frame in bench.said if isinstance(frame, Nak)} == {"at 6"}


# --- reports ------------------------------------------------------------------------------------------------------


def test_progress_is_reported_at_once_and_then_every_20_ms_at_most(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 9)))
    taken = bench.stream.work.take(bench.now, 9)
    for message in taken:
        bench.stream.work.acknowledge(0.0, message)
        bench.stream.note_progress(bench.now)
        bench.run(bench.now + 0.005)
    reports = bench.all(Report)
    assert len(reports) == 2
    bench.run(bench.now + 0.05)
    assert bench.all(Report)[-1].report.lanes == (LaneProgress(1, 0, 8, ()),)


def test_a_report_says_how_far_the_socket_was_read(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    report = bench.stream.report(full=True)
    assert (report.stream, report.taken, report.window) == (SENDER, 300, bench.stream.intake.window)


def test_a_probe_is_answered_with_a_report(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    bench.tail()
    bench.run(0.0)
    assert bench.all(Report)[-1].report.taken == 300


def test_every_half_window_is_reported(bench: Bench) -> None:
    bench.stream.intake.window = 600
    bench.take_in(bench.frame(1, 2))
    bench.run(0.0)
    assert not bench.all(Report)
    bench.take_in(bench.frame(3))
    bench.run(0.0)
    assert bench.all(Report)[-1].report.taken == 300


def test_a_full_report_tells_all_open_lanes_and_nothing_of_what_the_sender_knows(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 9)))
    for message in bench.stream.work.take(bench.now, 2):
        bench.stream.work.acknowledge(0.0, message)
    bench.stream.send_report(0.0)
    assert bench.stream.report(full=False).lanes == ()
    assert bench.stream.report(full=True).lanes == (LaneProgress(1, 0, 5, ()),)
    bench.beat(done_to=5)
    assert bench.stream.report(full=True).lanes == ()


# --- inheriting ---------------------------------------------------------------------------------------------------


def test_an_heir_waits_for_the_lease_asks_and_starts_on_the_answer(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 9)))
    assert bench.start() == [2, 4, 6, 8]
    bench.stamp(5, silent=(Silence(6, 0.9),))
    bench.run(0.19, beats=True)
    assert not bench.all(AskProgress)
    bench.run(0.21, beats=True)
    ask = bench.all(AskProgress)[0]
    assert (ask.source, ask.stream, ask.group, ask.lanes) == (ME, SENDER, GROUP, (LaneQuestion(1, 1, 1, 0),))
    assert bench.start() == []
    bench.answer(LaneAnswer(1, 1, 1, 3, (7, 7), True))
    taken = bench.stream.work.take(bench.now, 9)
    assert [message.body for message in taken] == [5]
    assert taken[0].redelivered and taken[0].lane_asked_at == pytest.approx(0.2)
    assert any("inherited 1 lanes" in words for words in bench.told)


def test_one_that_said_goodbye_is_not_waited_for(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    bench.stamp(5, gone=(6,))
    bench.run(0.0)
    assert bench.all(AskProgress)


def test_the_question_is_repeated_until_it_is_answered(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    bench.stamp(5, gone=(6,))
    bench.run(0.8, beats=True)
    asked = len(bench.all(AskProgress))
    assert 4 <= asked <= 10
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True))
    bench.run(1.5, beats=True)
    assert len(bench.all(AskProgress)) == asked


def test_an_answer_to_nothing_that_was_asked_gives_nothing(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    bench.stamp(5, gone=(6,))
    bench.run(0.0)
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True), nonce=12345)
    bench.start()
    assert not bench.stream.may_start(0.0, 1)


def test_an_answer_to_a_question_from_before_the_wait_was_over_gives_nothing(bench: Bench) -> None:
    """The lane was 6's, then 7's, then mine: what was asked when 6 was lost knows nothing of 7."""
    bench = Bench()
    bench.stamp(5, 6)
    bench.beats.beat(0.0)
    bench.beat()
    bench.take_in(bench.frame(1, 2, 3))
    bench.stamp(5, gone=(6,))
    bench.run(0.0)
    old = bench.all(AskProgress)[-1].nonce
    bench.stamp(7)
    bench.stamp(5, silent=(Silence(7, 0.0),))
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True), nonce=old)
    assert not bench.stream.may_start(0.0, 1)
    bench.run(1.05, beats=True)
    assert not bench.stream.may_start(1.05, 1)
    bench.run(1.15, beats=True)
    bench.answer(LaneAnswer(1, 0, 1, 0, (), True), LaneAnswer(1, 1, 1, 0, (), True))
    assert bench.stream.may_start(1.15, 1)


def test_progress_is_reported_before_it_is_asked_for(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3))
    bench.stamp(5, gone=(6,))
    bench.run(0.0)
    kinds = [type(frame) for _, frame in bench.said]
    assert kinds.index(Report) < kinds.index(AskProgress)


def test_what_is_missing_of_an_inherited_lane_is_asked_for(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.frame(3)
    bench.take_in(bench.frame(4))
    bench.stamp(5, gone=(6,))
    bench.run(0.0)
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True))
    bench.run(0.05)
    assert bench.missing() == [3]


def test_nothing_of_a_lane_that_was_lost_is_started(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3, 4))
    assert [message.body for message in bench.stream.work.take(bench.now, 1)] == [2]
    bench.stamp(6)
    assert bench.start() == []
    assert not bench.stream.may_start(0.0, 4)
    assert any("lost lane 1/0" in words for words in bench.told)


def test_one_that_was_struck_out_and_let_in_again_does_not_start_its_old_lanes(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2, 3, 4))
    bench.stamp(6)
    bench.stamp(5, 6)
    assert bench.start() == []
    bench.take_in(bench.frame(5, 6))
    assert bench.start() == [6]


def test_a_stream_that_was_forgotten_is_asked_for_before_even_own_lanes_start() -> None:
    bench = Bench(was_forgotten=True)
    bench.stamp(5)
    bench.beats.beat(0.0)
    bench.beat()
    bench.take_in(bench.frame("a", "b"))
    assert bench.start() == []
    bench.run(0.0)
    bench.answer(LaneAnswer(1, 0, 1, 1, (), True))
    assert bench.start() == ["b"]


def test_a_closed_segment_is_forgotten(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.stamp(5)
    bench.stamper.close_before(2)
    bench.beat(done_to=2)
    assert [key.stamp for key in bench.stream.lanes] == [2]
    assert bench.start() == []


# --- orphans ------------------------------------------------------------------------------------------------------


def test_when_all_who_could_inherit_have_not_heard_the_sender_either_it_goes_on(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.peer(6)
    bench.run(0.7)
    assert bench.stream.lease.orphaned
    bench.run(T.orphan_for - 0.01)
    assert bench.start() == [2]
    bench.run(T.orphan_for)
    assert not bench.stream.lease.holds(T.orphan_for)


@pytest.mark.parametrize(
    "word",
    [{"silent": False}, {"counter": 0}, {"stamp": 2}],
    ids=["it hears the sender", "its word is older than what I heard", "it knows a stamp that I do not"],
)
def test_one_word_against_it_is_enough_to_stop(bench: Bench, word: dict[str, Any]) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.peer(6, **word)
    for now in (0.7, 0.8, 0.9, T.lease):
        bench.run(now)
        assert bench.stream.is_silent(now) and not bench.stream.lease.orphaned
    assert bench.start() == []


def test_without_a_word_of_one_who_could_inherit_it_stops(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.run(0.7)
    bench.run(T.lease)
    assert bench.start() == []


def test_alone_it_goes_on() -> None:
    bench = Bench()
    bench.stamp(5)
    bench.beats.beat(0.0)
    bench.beat()
    bench.take_in(bench.frame(1))
    bench.run(T.orphan_after + 0.1)
    bench.run(3.0)
    assert bench.start() == [1]


def test_a_word_that_comes_after_the_lease_is_too_late(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.run(T.lease)
    bench.peer(6)
    bench.stream.consider_orphaned(bench.now, bench.peers)
    assert bench.start() == []


def test_a_sender_that_is_heard_is_not_orphaned(bench: Bench) -> None:
    bench.peer(6)
    bench.run(0.5)
    bench.beat()
    bench.run(0.9)
    assert not bench.stream.lease.orphaned
    assert not bench.stream.is_silent(0.9)


def test_the_sender_coming_back_ends_the_orphans_time(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.peer(6)
    bench.run(0.7)
    bench.run(2.0)
    assert bench.stream.may_start(2.0, 2)
    bench.beat(echo=False)
    assert not bench.stream.may_start(2.0, 2)
    assert bench.start() == []


def test_a_stamp_of_a_sender_that_is_back_ends_the_orphans_time_too(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.peer(6)
    bench.run(0.7)
    bench.run(2.0)
    assert bench.stream.may_start(2.0, 2)
    bench.stamp(5, 6, 7)
    assert not bench.stream.may_start(2.0, 2)


def test_having_called_a_stream_orphaned_it_says_so_for_as_long_as_one_may_rely_on_it(bench: Bench) -> None:
    assert bench.stream.heard(0.5) == Heard(SENDER, 1, 1, False, False)
    assert bench.stream.newly_silent(0.7)
    assert bench.stream.heard(0.7) == Heard(SENDER, 1, 1, True, True)
    assert not bench.stream.newly_silent(0.8), "it was said"
    bench.now = 1.0
    bench.beat()
    assert bench.stream.heard(1.0) == Heard(SENDER, 2, 1, False, True)
    bench.now = 0.7 + T.orphan_wait
    bench.beat()
    assert bench.stream.heard(bench.now) == Heard(SENDER, 3, 1, False, False)


def test_what_a_dead_sender_left_undone_is_reported_lost_by_id(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 41)))
    (first, *_) = bench.stream.work.take(bench.now, 5)
    bench.stream.work.acknowledge(0.0, first)
    bench.run(T.orphan_for + 0.1)
    assert bench.stream.given_up
    assert bench.stats.lost == 19
    (words,) = [words for words in bench.told if "lost 19 messages" in words]
    assert f"{SENDER:016x}-4, " in words and words.endswith("and 9 more")
    bench.beat()
    assert not bench.stream.given_up and any("is back" in words for words in bench.told)


def test_what_an_heir_was_not_told_of_when_the_sender_died_is_told_too_as_what_it_is(bench: Bench) -> None:
    """The owner died, then the sender, before it said how far that one had come: nobody else can tell of these."""
    bench.take_in(bench.frame(*range(1, 41)))
    for message in bench.stream.work.take(bench.now, 40):
        bench.stream.work.acknowledge(0.0, message)
    bench.stamp(5, gone=(6,))
    bench.run(T.orphan_for + 1.2)
    assert bench.stream.given_up and bench.stats.lost == 0, "what may have been handled is not counted"
    (words,) = [words for words in bench.told if ": lost " in words]
    assert "lost or handled by a receiver that is gone too, 20 messages: " in words
    assert f"{SENDER:016x}-1, {SENDER:016x}-3, " in words and words.endswith("and 10 more")


def test_what_an_heir_knows_to_be_done_is_not_told_as_lost(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 41)))
    for message in bench.stream.work.take(bench.now, 40):
        bench.stream.work.acknowledge(0.0, message)
    bench.beat(done_to=37)
    bench.stamp(5, gone=(6,))
    bench.run(T.orphan_for + 1.2)
    (words,) = [words for words in bench.told if ": lost " in words]
    assert words.endswith(f"gone too, 1 message: {SENDER:016x}-39")


def test_a_silent_stream_is_forgotten_after_a_while(bench: Bench) -> None:
    assert not bench.stream.forgotten(FORGET_S)
    assert bench.stream.forgotten(FORGET_S + 0.1)


# --- leaving and memory -------------------------------------------------------------------------------------------


def test_one_that_leaves_stays_until_its_stamp_is_over_its_work_done_and_confirmed(bench: Bench) -> None:
    bench.take_in(bench.frame(1, 2))
    bench.stream.leave(bench.now)
    members = (Member(6, 1),)
    bench.hear(bench.stamper.switch(3, GROUP, Version(2, 5), members, (5,), (), ()))
    assert not bench.stream.is_left(0.0), "there is work"
    (message,) = bench.stream.work.take(bench.now, 9)
    bench.stream.work.acknowledge(0.0, message)
    assert not bench.stream.is_left(0.0), "the sender does not know yet"
    bench.stream.note_progress(0.0)
    bench.run(0.05)
    bench.answer(LaneAnswer(1, 0, 1, 2, (), True))
    assert bench.stream.is_left(bench.now)


def test_one_that_leaves_does_not_ask_before_now(bench: Bench) -> None:
    bench.now = 5_000.0
    bench.take_in(bench.frame(1, 2))
    (message,) = bench.stream.work.take(bench.now, 9)
    bench.stream.work.acknowledge(bench.now, message)
    bench.stream.leave(bench.now)
    assert bench.stream.next_deadline() == bench.now


def test_one_that_leaves_waits_for_no_answer_about_what_its_group_is_done_with(bench: Bench) -> None:
    """Its stamp may be open for long, for another group; but the sender has let go of the lane and does not answer."""
    bench.take_in(bench.frame(1, 2))
    bench.stamp(5, 7)
    members = (Member(7, 1),)
    bench.hear(bench.stamper.switch(3, GROUP, Version(2, 5), members, (5,), (Silence(6, 0.0),), ()))
    assert bench.stream.inheriting, "of 6"
    bench.stream.leave(bench.now)
    assert (bench.stream.keeps(bench.now) or "").startswith("what we lack of 1 lane")
    bench.beat(done_to=2)
    assert not bench.stream.inheriting
    assert bench.stream.is_left(bench.now), bench.stream.keeps(bench.now)


def test_one_that_leaves_says_what_it_waits_for(bench: Bench) -> None:
    bench.stream.leave(bench.now)
    assert bench.stream.keeps(bench.now) == f"a stamp without us: its newest, {bench.stamper.newest}, still has us"
    bench.take_in(bench.frame(1, 2))
    assert bench.stream.keeps(bench.now) == "what we lack of 1 lane of ours"
    bench.now = T.orphan_after + 0.1
    assert bench.stream.keeps(bench.now) == "what we lack of 1 lane of ours, or to be given up, for it is silent"
    bench.beat()
    (message,) = bench.stream.work.take(bench.now, 9)
    bench.stream.work.acknowledge(bench.now, message)
    assert bench.stream.keeps(bench.now) == "word that it knows what was done here"
    assert bench.stream.keeps(bench.now, hands_back=True) == "word that it knows what was done here"


def test_one_that_is_still_a_member_has_not_left(bench: Bench) -> None:
    bench.stream.leave(bench.now)
    assert not bench.stream.is_left(0.0)
    bench.beat(held=True)
    assert bench.stream.is_left(0.0), "unless nobody else is there: then the sender holds"


def test_one_that_hands_back_waits_until_the_sender_knows_what_was_done(bench: Bench) -> None:
    bench.take_in(bench.frame(*range(1, 7)))
    _, middle, _ = bench.stream.work.take(bench.now, 9)
    bench.stream.leave(bench.now)
    assert bench.stream.is_confirmed(0.0)
    bench.stream.work.acknowledge(0.0, middle)
    assert not bench.stream.is_confirmed(0.0)
    bench.stream.leave(bench.now)
    bench.run(0.0)
    bench.answer(LaneAnswer(1, 0, 1, 1, (4, 4), True))
    assert bench.stream.is_confirmed(0.0)


def test_copies_of_what_others_own_are_dropped_first(bench: Bench) -> None:
    theirs, mine = bench.frame(1), bench.frame(2)
    bench.take_in(theirs, mine)
    bench.stream.drop_copies()
    assert list(bench.stream.holding.frames) == [2]
    assert bench.start() == [2]


# --- answers in parts, tries, gates, clocks -----------------------------------------------------------------------


def heir() -> Bench:
    """5 inherits from 6, and has asked."""
    bench = Bench()
    bench.stamp(5, 6)
    bench.take_in(bench.frame(*range(1, 11)))
    bench.run(0.3, beats=True)
    bench.stamp(5, gone=(6,))
    bench.run(0.4, beats=True)
    assert bench.all(AskProgress)
    bench.start()
    return bench


def test_an_answer_in_parts_grants_a_lane_with_the_last_part_and_asks_on_at_once() -> None:
    bench = heir()
    bench.answer(LaneAnswer(1, 1, 1, 0, (3, 3), False))
    assert bench.start() == []
    assert bench.stream.next_deadline() <= bench.now
    bench.run(bench.now)
    assert bench.all(AskProgress)[-1].lanes == (LaneQuestion(1, 1, 1, 3),)
    bench.answer(LaneAnswer(1, 1, 1, 0, (7, 7), True))
    assert bench.start() == [1, 5, 9]


def test_an_answer_that_says_nothing_and_is_not_whole_is_none() -> None:
    bench = heir()
    bench.answer(LaneAnswer(1, 1, 1, 9, (), False))
    assert bench.start() == []
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True))
    assert bench.start() == [1, 3, 5, 7, 9]


def test_an_heir_learns_how_often_messages_were_tried() -> None:
    bench = heir()
    bench.answer(LaneAnswer(1, 1, 1, 0, (), True), tried=(Tried(3, 2, 6),))
    attempts = {message.body: message.attempt for message in bench.stream.work.take(bench.now, 9)}
    assert attempts == {1: 1, 3: 3, 5: 1, 7: 1, 9: 1}


def test_what_is_done_of_an_inherited_lane_is_not_asked_for_any_more() -> None:
    """Its sender need not have it. If it were asked for for ever, real gaps would find no place."""
    bench = Bench()
    bench.stamp(5, 6)
    bench.frame(*range(1, 9))
    bench.run(0.1, beats=True)
    bench.stamp(5, gone=(6,))
    bench.run(0.5, beats=True)
    assert set(bench.missing()) >= set(range(1, 9)), "all of it may be needed"
    bench.said.clear()
    bench.run(0.9, beats=True)
    bench.answer(LaneAnswer(1, 1, 1, 4, (7, 8), True))
    bench.stream.lanes[LaneKey(1, 0, 1)].done.merge(4, (7, 8))
    bench.stream._stop_asking_for_done(bench.stream.lanes[LaneKey(1, 0, 1)])
    bench.said.clear()
    bench.run(2.0, beats=True)
    assert set(bench.missing()) == {5, 6}


def test_starts_are_reported_at_once_and_again_in_turns() -> None:
    bench = Bench(tracked=True)
    bench.stamp(5)
    bench.take_in(bench.frame(*range(1, 401)))
    bench.run(0.1, beats=True)
    taken = bench.stream.work.take(bench.now, 400)
    assert len(taken) == 400
    first, second = bench.stream.report(full=False), bench.stream.report(full=False)
    assert [len(first.tried), len(second.tried)] == [limits.REPORT_TRIED_MAX, 400 - limits.REPORT_TRIED_MAX]
    assert bench.stream.report(full=False).tried == ()
    again = {one.sequence for _ in range(2) for one in bench.stream.report(full=True).tried}
    assert again == set(range(1, 401)), "a report can be lost: heartbeats repeat all of them"


def test_reports_fit_a_datagram_however_many_lanes_have_holes() -> None:
    bench = Bench()
    members = (Member(ME, limits.WEIGHT_MAX),)
    bench.hear(bench.stamper.switch(1, GROUP, Version(1, 5), members, (), (), ()))
    bench.take_in(bench.frame(*range(6_400)))
    bench.run(0.1, beats=True)
    taken = sorted(bench.stream.work.take(bench.now, 6_400), key=lambda message: message.sequence)
    for number, message in enumerate(taken):
        if number // limits.WEIGHT_MAX % 2:
            bench.stream.work.acknowledge(0.0, message)
    bench.stream.shared_by = 3
    known: dict[LaneKey, DoneRuns] = {}
    for turn in range(80):
        report = bench.stream.report(full=turn % 3 == 0)
        bench.stream.reported(bench.now)
        assert len(encode_control(Report(ME, report), TAG)) < limits.DATAGRAM_BYTES_MAX // 2
        for lane in report.lanes:
            known.setdefault(LaneKey(lane.stamp, lane.slot, 1), DoneRuns(0)).merge(lane.floor, lane.runs)
    for key, lane in bench.stream.lanes.items():
        done = lane.all_done()
        assert known[key].flat(999) == done.flat(999)


def test_gates_are_opened_by_heartbeats_for_segments_that_are_known(bench: Bench) -> None:
    opened: list[tuple[int, int]] = []
    bench.stream.work.open_gates = lambda stamp, bits: opened.append((stamp, bits))  # type: ignore[method-assign]
    bench.beat(shards=(ShardsDone(1, (5, 1)), ShardsDone(9, (7,))))
    assert opened == [(1, 1 << 32 | 5)]


def test_clocks_that_are_far_apart_for_long_are_told_of_once(bench: Bench) -> None:
    for bench.now in (0.4, 3.0, 3.5):
        bench.tail()
    assert not any("clock" in text for text in bench.told), "a few frames may just have come late"
    for bench.now in (4.1, 5.0):
        bench.tail()
    assert [text for text in bench.told if "clock" in text] == [
        f"the clock of sender {SENDER:016x} is 4.1 s behind ours: its due times and times to live are read by our "
        "clock, so set both clocks right"
    ]


# --- handing over -------------------------------------------------------------------------------------------------


def with_backlog(*, load: int = 0) -> Bench:
    """Of 1 to 24 the even ones are ours, of which 2 is in hand; 6 has so much to do."""
    bench = Bench()
    bench.stamp(5, 6)
    bench.beats.beat(0.0)
    bench.beat()
    bench.take_in(bench.frame(*range(1, 25)))
    bench.peer(6, silent=False)
    bench.peers[6].load = load
    assert [message.body for message in bench.stream.work.take(0.0, 1)] == [2]
    return bench


def consider(bench: Bench, times: int = 3) -> None:
    for _ in range(times):
        bench.stream.consider_handing_over(bench.now, bench.peers)
        bench.stream.wake(bench.now, bench.peers)
        bench.stream.check_invariants()


def test_after_three_heartbeats_half_of_what_waits_is_offered_to_an_idle_one() -> None:
    bench = with_backlog()
    consider(bench, 2)
    assert bench.all(HandOver) == []
    consider(bench, 1)
    assert bench.all(HandOver) == [HandOver(ME, SENDER, GROUP, 1, 0, 16, 6, 1)]
    assert (bench.start(), bench.stats.handed_over) == ([4, 6, 8, 10, 12, 14], 5)
    assert not bench.stream.may_start(bench.now, 16) and bench.stream.may_start(bench.now, 14)


def test_nothing_is_offered_to_those_who_have_work() -> None:
    bench = with_backlog(load=1)
    consider(bench, 9)
    assert bench.all(HandOver) == []


def leaves(bench: Bench) -> None:
    bench.stream.leave(bench.now)


def has_no_lease(bench: Bench) -> None:
    bench.now = 5.0


def is_alone(bench: Bench) -> None:
    bench.peers.clear()


def is_orphaned(bench: Bench) -> None:
    bench.now = 0.9
    bench.peer(6)
    bench.stream.consider_orphaned(bench.now, bench.peers)
    assert bench.stream.lease.orphaned


def has_many_stamps(bench: Bench) -> None:
    for _ in range(OPEN_STAMPS_MAX):
        bench.stamp(5, 6)


@pytest.mark.parametrize("change", [leaves, has_no_lease, is_alone, is_orphaned, has_many_stamps])
def test_one_that_cannot_or_need_not_hands_nothing_over(change: Callable[[Bench], None]) -> None:
    bench = with_backlog()
    change(bench)
    consider(bench, 9)
    assert bench.all(HandOver) == []


def test_it_asks_until_the_stamp_is_there_and_then_begins_anew() -> None:
    bench = with_backlog()
    consider(bench)
    bench.run(0.35)
    assert len(bench.all(HandOver)) == 4
    consider(bench, 9)
    assert {ask.first for ask in bench.all(HandOver)} == {16}, "one at a time"
    bench.hear(bench.stamper.move(25, GROUP, Moved(1, 0, 16, 6)))
    bench.said.clear()
    bench.run(0.9)
    assert bench.all(HandOver) == []
    consider(bench)
    assert [ask.first for ask in bench.all(HandOver)] == [10]


def test_it_asks_no_more_when_the_lane_is_lost() -> None:
    bench = with_backlog()
    consider(bench)
    bench.stamp(6)
    bench.said.clear()
    bench.run(0.9)
    assert bench.all(HandOver) == [] and bench.start() == []


def test_it_asks_on_although_what_stands_at_the_fence_turns_out_to_be_done() -> None:
    """A former owner is heard again: it had done that. The stamp may be on its way: the rest is nobody's till then."""
    bench = with_backlog()
    consider(bench)
    bench.said.clear()
    bench.beats.beat(bench.now)
    bench.beat(done_to=17)
    bench.run(0.35)
    assert {ask.first for ask in bench.all(HandOver)} == {16}
    assert bench.start() == []
    bench.hear(bench.stamper.move(25, GROUP, Moved(1, 0, 16, ME)))
    bench.run(0.4)
    bench.answer(LaneAnswer(1, 0, 16, 17, (), True))
    assert bench.start() == [18, 20, 22, 24]


def test_a_fence_is_gone_when_the_lane_was_lost_and_came_back_in_one_breath() -> None:
    """Both stamps are heard only now: what was to be given away is ours again, once the sender has answered."""
    bench = with_backlog()
    consider(bench)
    away = bench.switch(6)
    bench.hear(bench.switch(5, gone=(6,)))
    bench.hear(away)
    bench.said.clear()
    bench.run(0.9 + T.heir_wait)
    assert bench.all(HandOver) == []
    bench.beats.beat(bench.now)
    bench.beat()
    bench.answer(LaneAnswer(1, 0, 1, 2, (), True), LaneAnswer(1, 1, 1, 24, (), True))
    assert sorted(bench.start()) == list(range(4, 25, 2))


def test_what_is_given_to_me_begins_with_the_answer_and_without_a_wait() -> None:
    bench = Bench()
    bench.stamp(5, 6)
    bench.beats.beat(0.0)
    bench.beat()
    bench.take_in(bench.frame(*range(1, 25)))
    assert bench.start() == list(range(2, 25, 2))
    bench.hear(bench.stamper.move(25, GROUP, Moved(1, 1, 15, ME)))
    assert bench.start() == []
    bench.run(0.01)
    assert bench.all(AskProgress)[-1].lanes == (LaneQuestion(1, 1, 15, 0),)
    bench.answer(LaneAnswer(1, 1, 15, 4, (17, 17), True))
    messages = bench.stream.work.take(bench.now, 99)
    assert [message.sequence for message in messages] == [15, 19, 21, 23]
    assert not any(message.redelivered for message in messages), "nobody can have started it"


def test_what_comes_back_because_the_other_is_gone_is_asked_for_and_begun() -> None:
    bench = with_backlog()
    consider(bench)
    bench.hear(bench.stamper.move(25, GROUP, Moved(1, 0, 16, ME)))
    bench.run(0.01)
    bench.answer(LaneAnswer(1, 0, 16, 1, (), True))
    assert sorted(bench.start()) == list(range(4, 25, 2))


def test_what_was_to_be_given_away_when_the_sender_died_is_told_as_lost() -> None:
    bench = with_backlog()
    consider(bench)
    bench.run(20.0)
    assert bench.stream.given_up and bench.stats.lost == 12


def test_its_load_is_what_is_in_hand_and_what_can_be_started() -> None:
    bench = with_backlog()
    assert bench.stream.load(0.0) == 12
    taken = bench.stream.work.take(0.0, 3)
    assert bench.stream.load(0.0) == 12
    for message in taken:
        bench.stream.work.acknowledge(0.0, message)
    assert bench.stream.load(0.0) == 9
    assert bench.stream.load(5.0) == 1, "without a lease nothing is in line"
    bench.stamp(6)
    assert bench.stream.load(5.0) == 0
