"""One stream as one receiver follows it. Owns its stamps, the lanes that are ours, the lease, and what is asked.

Composes `holding` (frames), `work` (messages) and `lease`. Frames to send are appended to the receiver's outgoing list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, islice
from random import Random

from rvq import limits
from rvq.core.flow import Intake
from rvq.core.gates import numbers_to_bits
from rvq.core.handover import ASK_S, OPEN_STAMPS_MAX, Patience, idle_peer
from rvq.core.holding import HeldFrame, Holding
from rvq.core.lanes import Lane, Part, heir_may_ask_at, ownership
from rvq.core.lease import Beats, Lease
from rvq.core.machine import Address, Wall
from rvq.core.membership import Peer
from rvq.core.outcomes import Outcomes, Tell
from rvq.core.repair import ASK_S_FIRST
from rvq.core.runs import DoneRuns
from rvq.core.stamps import Segment, StampLog
from rvq.core.stats import Stats
from rvq.core.work import Work
from rvq.errors import WireError
from rvq.message import Settler
from rvq.timings import Timings
from rvq.wire.batch import own_stride
from rvq.wire.frames import (
    AskProgress,
    AskStamps,
    Control,
    DataHeader,
    FrameType,
    HandOver,
    Heard,
    LaneKey,
    LaneQuestion,
    Nak,
    Progress,
    Report,
    SenderAlive,
    Stamp,
    StreamReport,
    Tried,
)
from rvq.wire.records import NO_SHARD
from rvq.wire.train import Train

STAMPS_S = 0.002
"""Before unknown stamps are asked for: they come on the same way as the frames, just before them."""
ASK_S_MIN, ASK_S_MAX = 0.03, 0.4
"""Questions are repeated after the first, doubling up to the second."""
CONTROL_GAP_S = 0.03
"""A heartbeat can overtake the data that it speaks of, by another socket: wait this long before asking for that."""
CLOCK_S_WARN = 0.5
"""Wall clocks that are further apart than this are worth a word."""
ASKED_MAX = 16
"""Receivers whose answers count: they come within a moment, and one is asked twice a second at least."""
LOST_SHOWN = 10
"""Messages of a sender that is gone that are named: one line of a log. All are counted."""
FORGET_S = 60.0
"""How long a stream whose sender is silent is remembered, in case it was only stopped."""

Send = Callable[[Address, Control], None]
_DATA, _FRAGMENT, _TAIL = int(FrameType.DATA), int(FrameType.FRAGMENT), int(FrameType.TAIL)


class Question:
    """When to ask, and ask again."""

    __slots__ = ("at", "pause")

    def __init__(self) -> None:
        self.at = math.inf
        self.pause = ASK_S_MIN

    def want(self, at: float) -> None:
        """There is something to ask, from that time on."""
        if self.at == math.inf:
            self.at, self.pause = at, ASK_S_MIN

    def asked(self, now: float) -> None:
        self.at = now + self.pause
        self.pause = min(ASK_S_MAX, 2 * self.pause)

    def answered(self) -> None:
        self.at = math.inf

    def ask_now(self, now: float) -> None:
        """The answer was only a part of it."""
        self.at, self.pause = now, ASK_S_MIN


class Stream:
    """One sender's messages to one label, at one receiver of one group."""

    def __init__(
        self,
        id: int,
        *,
        label: str,
        group: str,
        me: int,
        address: Address,
        timings: Timings,
        random: Random,
        stats: Stats,
        beats: Beats,
        send: Send,
        tell: Callable[[str], None],
        settler: Settler | None,
        wall: Wall,
        tracked: bool,
        was_forgotten: bool,
        now: float,
        work_kind: type[Work] = Work,
    ) -> None:
        self.id, self.label, self.group, self.me = id, label, group, me
        self.address = address
        self.settler = settler
        self.log = StampLog(group)
        self.lease = Lease(timings)
        self.holding = Holding(random, stats)
        self.work = work_kind(stats, wall, me, tracked=tracked)
        self._wall = wall
        self._clocks_differ_since = math.inf
        self._told_of_clocks = False
        self.intake = Intake()
        self.shared_by = 1
        """How many streams share a heartbeat."""
        self.lanes: dict[LaneKey, Lane] = {}
        self.counter = 0
        self.heard_at = now
        self.last = 0
        self.held = False
        self.leaving = False
        self.report_at = math.inf
        self.given_up = False
        self._timings, self._random, self._stats, self._beats = timings, random, stats, beats
        self._send, self._tell = send, tell
        self._was_forgotten = was_forgotten
        self._own: dict[int, list[Lane]] = {}
        """The lanes that are mine by segment, granted or not."""
        self._unknown: list[tuple[DataHeader, bytes]] = []
        self._unknown_bytes = 0
        self.asked: dict[Address, None] = {}
        """Receivers that were asked for what is missing, since the sender was heard last; the newest ones."""
        self._echo = (0, 0)
        self._orphaned_at = -math.inf
        self._reported_at = -math.inf
        self._lost_lanes = False
        self._stamps_question, self._lanes_question = Question(), Question()
        self._patience = Patience()
        self._hand_over: HandOver | None = None
        self._hand_over_at = math.inf
        self._nonces: dict[int, float] = {}
        self._confirmed: dict[LaneKey, DoneRuns] = {}
        """What the sender knows as done of my lanes, by its own word."""

    # --- data -----------------------------------------------------------------------------------------------------

    @property
    def cost(self) -> int:
        """What its frames take of memory, about."""
        return self.holding.cost + self._unknown_bytes + limits.DATAGRAM_COST_BYTES * len(self._unknown)

    @property
    def works_with_me(self) -> bool:
        """Am I in its stamps, and has it ever echoed me?"""
        return self._echo[0] > 0 and self.log.current is not None and self.log.current.has(self.me)

    def on_others_data(self, now: float, header: DataHeader, datagram: bytes) -> None:
        """A batch or fragment that another receiver has. Of how far the stream is, only its sender knows."""
        if header.stamp <= self.log.complete_to and header.first + header.count - 1 <= self.last:
            self.on_data(now, header._replace(done_to=0, position=0), datagram)

    def on_data(self, now: float, header: DataHeader, datagram: bytes) -> None:
        """A batch, a fragment or a tail. Raises WireError."""
        _, kind, _, count, _, stamp, _, first, sent_at, done_to, position = header
        if self.intake.take(position):
            self.report_at = now
        log, work = self.log, self.work
        if stamp > log.complete_to:
            if len(self._unknown) < limits.UNKNOWN_FRAMES_MAX and kind != _TAIL:
                self._unknown.append((header, datagram))
                self._unknown_bytes += len(datagram)
            log.announced = max(log.announced, stamp)
            self._stamps_question.want(now + STAMPS_S)
            return
        if done_to > work.done_to:
            self._raise_done(done_to)
        if kind == _TAIL:
            self._compare_clocks(now, sent_at)
            self._notice(now, first)
            self.report_at = min(self.report_at, now)
            return
        last = first + count - 1
        if first > self.last + 1:
            self._notice(now, first - 1)
        if last > self.last:
            self.last = last
        if last <= work.done_to:
            self._stats.duplicates += 1
            return
        if kind == _DATA:
            frame = self.holding.add(header, datagram)
        elif kind == _FRAGMENT:
            frame = self.holding.add_part(now, header, datagram)
        else:
            raise WireError(f"a data frame of the unknown type {kind}")
        if frame is not None:
            self._offer(now, frame, stamp)
        elif kind == _DATA:
            self._stats.duplicates += 1

    def _compare_clocks(self, now: float, sent_at: float) -> None:
        """Due times and times to live are the sender's, and read by our clock: say so if they differ."""
        offset = self._wall.read(now) - sent_at
        if abs(offset) <= CLOCK_S_WARN:
            self._clocks_differ_since = math.inf
        elif self._clocks_differ_since > now:
            # One frame that lay in a buffer while its process was stopped shows nothing yet.
            self._clocks_differ_since = now
        elif now - self._clocks_differ_since > self._timings.expiry and not self._told_of_clocks:
            self._told_of_clocks = True
            which = "behind" if offset > 0 else "ahead of"
            self._tell(
                f"the clock of sender {self.id:016x} is {abs(offset):.1f} s {which} ours: its due times and times to "
                "live are read by our clock, so set both clocks right"
            )

    def on_train(self, now: float, train: Train) -> bool:
        """Many batches at once. False if they must be looked at one by one: not all are new, or there are keys."""
        header = train.header
        segment = self.log.segment_of_stamp(header.stamp)
        if train.first <= self.last or header.stamp > self.log.complete_to or segment is None or segment.keyed:
            return False
        if self.intake.take(header.position):
            self.report_at = now
        if header.done_to > self.work.done_to:
            self._raise_done(header.done_to)
        if train.first > self.last + 1:
            self._notice(now, train.first - 1)
        self.last = max(self.last, train.last)
        self._offer(now, self.holding.add_train(train), header.stamp)
        return True

    def _offer(self, now: float, frame: HeldFrame, stamp: int) -> None:
        """A frame goes to each lane of mine that it can have messages for."""
        segment = self.log.segment_of_stamp(stamp)
        if segment is None:
            self.holding.drop(frame.first)
            return
        work = self.work
        for lane in self._own.get(segment.stamp, ()):
            if lane.granted:
                work.add(lane, frame)
        # A sender that sees keys cannot tell which lanes a frame has nothing for: they are reported like progress.
        if segment.keyed and work.reported:
            self._report_soon(now + self._timings.report)
        if work.spoilt:
            self.ask_again_for_spoilt(now)

    def ask_again_for_spoilt(self, now: float) -> None:
        """Frames that turned out to be unreadable are missing again."""
        spoilt, self.work.spoilt = self.work.spoilt, []
        for frame in spoilt:
            self._stats.bad_frames += 1
            self.holding.drop(frame.first)
            self.holding.gaps.note(now, frame.first, frame.last)

    def _notice(self, now: float, last: int, wait: float = ASK_S_FIRST) -> None:
        """The stream goes up to `last` at least: what I have not heard of is missing, if it can be mine."""
        if last <= self.last:
            return
        first, self.last = self.last + 1, last
        self._want(now, first, last, wait)

    def _want(self, now: float, first: int, last: int, wait: float) -> None:
        for segment in self.log.segments:
            begin = max(first, segment.at, self.work.done_to + 1)
            end = last if segment.end is None else min(last, segment.end)
            if begin > end:
                continue
            lanes = self._own.get(segment.stamp, ())
            if any(_can_own(lane, begin, end) for lane in lanes):
                self.holding.gaps.note(now, begin, end, wait)
            else:
                self._pass_over(lanes, begin, end)

    def _search(self, now: float, wait: float) -> None:
        """Look again for what is missing in my lanes: after an inheritance, and at each heartbeat of the sender."""
        for lanes in self._own.values():
            open_lanes = [lane for lane in lanes if not lane.has_all(self.last)]
            if not open_lanes:
                continue
            segment = open_lanes[0].segment
            end = self.last if segment.end is None else min(self.last, segment.end)
            begin = max(self.work.done_to, min(lane.done.floor for lane in open_lanes)) + 1
            holes = list(self.holding.holes(begin, end))
            for lane in open_lanes:
                for first, last in list(lane.lacking(holes)):
                    first, last = max(first, lane.at), last if lane.limit is None else min(last, lane.limit)
                    if first > last:
                        continue
                    if _can_own(lane, first, last):
                        self.holding.gaps.note(now, first, last, wait)
                    else:
                        self._pass_over((lane,), first, last)

    def _pass_over(self, lanes: Iterable[Lane], first: int, last: int) -> None:
        """Nothing of these lanes is between here: as good as done."""
        for lane in lanes:
            if lane.done.merge(0, (first, last)):
                lane.changed[first] = None
                self.work.reported[lane] = None

    # --- what the sender says -------------------------------------------------------------------------------------

    def on_alive(self, now: float, frame: SenderAlive) -> None:
        """The sender's heartbeat."""
        if frame.counter > self.counter:
            self.counter = frame.counter
            self.heard_at = now
            self.asked.clear()
            self.lease.end_orphan()
            if self.given_up:
                self.given_up = False
                self._tell(f"sender {self.id:016x} is back")
        if self.log.announce(frame.oldest_stamp, frame.newest_stamp):
            self._derive(now)
        if self.log.missing():
            self._stamps_question.want(now + STAMPS_S)
        for state in frame.groups:
            if state.group == self.group:
                if frame.counter == self.counter:
                    self.held = state.held
                self._raise_done(state.done_to)
                for stamp, bits in state.shards:
                    if any(segment.stamp == stamp for segment in self.log.segments):
                        self.work.open_gates(stamp, numbers_to_bits(bits))
        for echo in frame.echoes:
            if echo.id == self.me and echo.counter > self._echo[0]:
                self._echo = (echo.counter, frame.newest_stamp)
        self._renew()
        if frame.last > self.last and self.log.knows(frame.newest_stamp):
            self._notice(now, frame.last, CONTROL_GAP_S)
        self.holding.sweep(self.work.done_to)
        self._search(now, CONTROL_GAP_S)

    def on_stamp(self, now: float, stamp: Stamp, others: int = 0) -> None:
        """A switch of the stream, or an older one that I asked for. `others`: slots in the stamps of other streams."""
        if self.log.learn(now, stamp, others):
            self.lease.end_orphan()
            self._derive(now)
        if self.log.missing() is None:
            self._stamps_question.answered()
        self._renew()

    def on_progress(self, now: float, frame: Progress) -> None:
        """The sender's answer: what is done of lanes that I inherit, or that I leave."""
        asked_at = self._nonces.get(frame.nonce)
        if asked_at is None:
            return
        inherited = 0
        self.work.learn_tries(frame.tried)
        for stamp, slot, first, floor, runs, whole in frame.lanes:
            key = LaneKey(stamp, slot, first)
            lane = self.lanes.get(key)
            if lane is None or not lane.mine or not (whole or runs):
                continue
            self._confirmed.setdefault(key, DoneRuns(floor)).merge(floor, runs)
            lane.answered_to = 0 if whole else max(lane.answered_to, runs[-2])
            if not lane.granted and asked_at >= lane.may_ask_at:
                if not lane.given and (lane.asked_at is None or lane.asked_at < lane.may_ask_at):
                    lane.asked_at = asked_at
                lane.done.merge(floor, runs)
                if whole:
                    self._stop_asking_for_done(lane)
                    lane.granted = True
                    self._begin(now, lane)
                    inherited += 1
            if not whole:
                self._lanes_question.ask_now(now)
        if inherited:
            self._tell(f"inherited {inherited} lanes of {self.id:016x}")
            self._search(now, 0.0)
        if not self._lanes_to_ask(now):
            self._lanes_question.answered()
            self._ask_lanes_when_due(now)

    def _stop_asking_for_done(self, lane: Lane) -> None:
        """The sender need not have any more what is done. What another lane lacks of it is searched for again."""
        runs = lane.done.flat(len(lane.done))
        self.holding.gaps.filled(0, lane.done.floor)
        for first, last in zip(runs[::2], runs[1::2], strict=True):
            self.holding.gaps.filled(first, last)

    def _renew(self) -> None:
        """An echo counts once every stamp is known up to the one that its heartbeat carried."""
        counter, newest = self._echo
        if counter and self.log.knows(newest):
            self.lease.renew(self._beats.sent_at(counter))

    def _raise_done(self, done_to: int) -> None:
        if done_to <= self.work.done_to:
            return
        self.work.raise_done(done_to, self.lanes.values(), self._lost_lanes)
        self.holding.drop_to(done_to)
        self.last = max(self.last, done_to)

    # --- who owns what --------------------------------------------------------------------------------------------

    def _derive(self, now: float) -> None:
        """Stamps changed: find out which lanes are mine."""
        segments = self.log.segments
        stamps = {segment.stamp for segment in segments}
        self.work.close_gates(stamps)
        for key in [key for key in self.lanes if key.stamp not in stamps]:
            self.work.forget(self.lanes.pop(key))
            self._confirmed.pop(key, None)
        self._own = {}
        for index, segment in enumerate(segments):
            for slot, parts in enumerate(ownership(segments, index)):
                for part in parts:
                    lane = self.lanes.get(LaneKey(segment.stamp, slot, part.first))
                    if part.owner == self.me:
                        self._keep(now, segment, slot, part, lane)
                    elif lane is not None and lane.mine:
                        lane.lose()
                        self._lost_lanes = True
                        self._tell(f"lost lane {lane.stamp}/{lane.slot} of {self.id:016x}")
        self._search(now, CONTROL_GAP_S)
        self._process_unknown(now)
        self._ask_lanes_when_due(now)

    def _keep(self, now: float, segment: Segment, slot: int, owned: Part, lane: Lane | None) -> None:
        if lane is None:
            lane = Lane(self, segment, slot, self._stats.lane(slot), owned.first)
            self.lanes[lane.key] = lane
        lane.segment, lane.end = segment, owned.last
        if lane.fence is not None and owned.last == lane.fence - 1:
            lane.fence = None  # what is behind it has its own owner now
        self._own.setdefault(segment.stamp, []).append(lane)
        if lane.mine and len(owned.losses) == lane.losses:
            return
        lane.lose()  # it may have been another's meanwhile, though only now we hear of it
        lane.mine, lane.losses = True, len(owned.losses)
        lane.inherited = bool(owned.losses) or self._was_forgotten
        lane.given = bool(owned.losses) and all(loss.given for loss in owned.losses) and not self._was_forgotten
        lane.granted, lane.asked_at, lane.answered_to = not lane.inherited, None, 0
        lane.may_ask_at = max(now, heir_may_ask_at(owned.losses, self.log.learned_at, self._timings))
        if lane.granted:
            self._begin(now, lane)

    def _begin(self, now: float, lane: Lane) -> None:
        """A lane can be worked on: whatever is here of it goes in line."""
        self.work.resume(lane)
        end = self.last if lane.end is None else lane.end
        for frame in self.holding.within(lane.at, end):
            self.work.add(lane, frame)
        if lane.inherited:
            self.work.sort()
        if self.work.spoilt:
            self.ask_again_for_spoilt(now)

    def _process_unknown(self, now: float) -> None:
        ready = [(header, data) for header, data in self._unknown if header.stamp <= self.log.complete_to]
        if ready:
            self._unknown = [pair for pair in self._unknown if pair[0].stamp > self.log.complete_to]
            self._unknown_bytes = sum(len(datagram) for _, datagram in self._unknown)
            for header, datagram in ready:
                try:
                    self.on_data(now, header, datagram)
                except WireError:
                    self._stats.bad_frames += 1

    def end(self) -> None:
        """The stream is over: nothing of it is anyone's any more."""
        self.tell_recorders(None)
        for lane in self.lanes.values():
            lane.lose()

    def tell_recorders(self, tell: Tell | None) -> None:
        """They are told from now on what is settled here; with None, only what was settled until now."""
        if self.work.outcomes is not None:
            self.work.outcomes.flush()
        self.work.outcomes = Outcomes(tell) if tell is not None else None

    def drop_copies(self) -> None:
        """Memory is short: drop frames in which nothing is left for me to start."""
        mine = self.work.unread()
        for first in [first for first in self.holding.frames if first not in mine]:
            self.holding.drop(first)

    @property
    def inheriting(self) -> bool:
        """Is a lane mine that its former owner may still be at?"""
        return bool(self._ungranted())

    def _ungranted(self) -> list[Lane]:
        """Lanes that I inherit, and may not start yet."""
        return [lane for lane in self.lanes.values() if lane.mine and not lane.granted and not self._is_over(lane)]

    def _is_over(self, lane: Lane) -> bool:
        """Is all of it done in the group, by whomever? The sender has let go of it then, and answers no question about
        it, though its stamp may be open for long: for another group that is behind."""
        return lane.end is not None and lane.end <= self.work.done_to

    # --- asking ---------------------------------------------------------------------------------------------------

    def _lanes_to_ask(self, now: float) -> list[LaneKey]:
        due = [lane.key for lane in self._ungranted() if lane.may_ask_at <= now]
        return due + [key for key in self._to_confirm() if key not in due]

    def _to_confirm(self) -> list[LaneKey]:
        """A leaving receiver has its progress confirmed by the sender."""
        if not self.leaving:
            return []
        return [key for key, lane in self.lanes.items() if lane.startable and not self._is_confirmed(key, lane)]

    def _is_confirmed(self, key: LaneKey, lane: Lane) -> bool:
        """Does the sender know all that is done here?"""
        confirmed = self._confirmed.setdefault(key, DoneRuns(self.work.done_to))
        confirmed.merge(self.work.done_to, ())
        done = lane.all_done()
        if done.floor >= lane.at and not confirmed.covers_run(lane.at, done.floor):
            return False
        runs = done.flat(len(done))
        return all(confirmed.covers_run(first, last) for first, last in zip(runs[::2], runs[1::2], strict=True))

    def _ask_lanes_when_due(self, now: float) -> None:
        waiting = [lane.may_ask_at for lane in self._ungranted()]
        if self._to_confirm():
            waiting.append(now)
        if waiting:
            self._lanes_question.want(max(now, min(waiting)))

    def leave(self, now: float) -> None:
        """The receiver leaves: from now on its progress is to be confirmed."""
        self.leaving = True
        self._ask_lanes_when_due(now)

    def _ask_lanes(self, now: float) -> None:
        lanes = self._lanes_to_ask(now)[: limits.REPORT_LANES_MAX]
        if not lanes:
            self._lanes_question.answered()
            self._ask_lanes_when_due(now)
            return
        self.send_report(now)
        nonce = self._random.getrandbits(62)
        self._nonces[nonce] = now
        while len(self._nonces) > 16:
            del self._nonces[next(iter(self._nonces))]
        self._lanes_question.asked(now)
        questions = tuple(LaneQuestion(*key, self.lanes[key].answered_to) for key in lanes)
        self._send(self.address, AskProgress(self.me, self.id, self.group, nonce, questions))

    def _ask_stamps(self, now: float, peers: Mapping[int, Peer]) -> None:
        missing = self.log.missing()
        if missing is None:
            self._stamps_question.answered()
            return
        self._stamps_question.asked(now)
        self._send(self._whom_to_ask(now, peers), AskStamps(self.me, self.id, *missing))

    def _ask_frames(self, now: float, peers: Mapping[int, Peer]) -> None:
        runs, fragments = self.holding.lacking(now)
        if runs or fragments:
            self._send(self._whom_to_ask(now, peers), Nak(self.me, self.id, runs, fragments))

    def _whom_to_ask(self, now: float, peers: Mapping[int, Peer]) -> Address:
        """The sender; or, while it is silent, a receiver that may have what it sent."""
        if self.is_silent(now):
            others = [peers[id].address for id in self._companions() if id in peers]
            if others:
                chosen = self._random.choice(others)
                self.asked[chosen] = None
                if len(self.asked) > ASKED_MAX:
                    del self.asked[next(iter(self.asked))]
                return chosen
        return self.address

    # --- orphans --------------------------------------------------------------------------------------------------

    def is_silent(self, now: float) -> bool:
        return now - self.heard_at > self._timings.orphan_after

    def newly_silent(self, now: float) -> bool:
        """Silent, and not yet said so: the others need my word before my lease, and theirs, is over."""
        return self.is_silent(now) and self._orphaned_at < self.heard_at

    @property
    def silent_at(self) -> float:
        """When to look whether it is silent; never again once that was said."""
        if self._orphaned_at >= self.heard_at:
            return math.inf
        return self.heard_at + self._timings.orphan_after + 1e-6

    def heard(self, now: float) -> Heard:
        """What I have heard of it. Having called it orphaned, I say so for as long as one may rely on it."""
        silent = self.is_silent(now)
        if silent:
            self._orphaned_at = now
        said = now - self._orphaned_at < self._timings.orphan_wait
        return Heard(self.id, self.counter, self.log.complete_to, silent, said)

    def _companions(self) -> list[int]:
        """The others who could inherit from me as far as I know."""
        current = self.log.current
        if current is None:
            return []
        return [id for id in (*(member.id for member in current.members), *current.draining) if id != self.me]

    def consider_orphaned(self, now: float, peers: Mapping[int, Peer]) -> None:
        """If all who could inherit from me have not heard the sender either, I go on with what I have."""
        if self.lease.orphaned or not self.is_silent(now) or not self.lease.holds(now):
            return
        for companion in self._companions():
            peer = peers.get(companion)
            heard = peer.heard.get(self.id) if peer else None
            # A word from before the last heartbeat that I heard is stale: it may have been taken back since.
            if heard is None or not heard.silent or heard.counter < self.counter or heard.stamp > self.log.complete_to:
                return
        if self.lease.orphan(now):
            self._tell(f"sender {self.id:016x} is silent: going on without it for {self._timings.orphan_for:g} s")

    def _give_up(self, now: float) -> None:
        """Nobody handles this stream any more: say what is lost."""
        self.given_up = True
        mine = [lane for lane in self.lanes.values() if lane.mine]
        undone = [partial(self._undone, lane) for lane in mine if lane.granted]
        self._stats.lost += self._tell_lost("", undone)
        # What I was to inherit: only the sender knew how far the one before me had come, and it did not say.
        self._tell_lost(
            "or handled by a receiver that is gone too, ",
            [partial(self._not_known_done, lane) for lane in mine if not lane.granted],
        )

    def _tell_lost(self, or_what: str, lanes: Sequence[Callable[[], Iterable[int]]]) -> int:
        """How many there are. They are looked at twice, and never all kept: there may be very many."""
        count = sum(1 for sequences in lanes for _ in sequences())
        if count:
            first = nsmallest(LOST_SHOWN, chain.from_iterable(sequences() for sequences in lanes))
            shown = ", ".join(f"{self.id:016x}-{sequence}" for sequence in first)
            more = f" and {count - LOST_SHOWN} more" if count > LOST_SHOWN else ""
            lost = f"lost {or_what}{count} message{'s' * (count != 1)}"
            self._tell(f"sender {self.id:016x} is gone: {lost}: {shown}{more}")
        return count

    def _not_known_done(self, lane: Lane) -> Iterable[int]:
        return self.work.not_known_done(lane, self.holding.within(lane.at, self._last_of(lane)))

    def _last_of(self, lane: Lane) -> int:
        return self.last if lane.end is None else lane.end

    def _undone(self, lane: Lane) -> Iterable[int]:
        for piece in lane.pieces.values():
            for place, index in enumerate(piece.places):
                if not piece.is_finished(place):
                    yield piece.first + index
        if lane.fence is not None:  # nobody knows whether it was stamped
            begin = max(lane.fence, self.work.done_to + 1)
            for frame in self.holding.within(begin, self._last_of(lane)):
                for place in own_stride(frame.first, frame.last - frame.first + 1, lane.slot, lane.slots):
                    if frame.first + place >= begin:
                        yield frame.first + place

    def forgotten(self, now: float) -> bool:
        return now - self.heard_at > FORGET_S

    # --- telling and waking ---------------------------------------------------------------------------------------

    def may_start(self, now: float, sequence: int) -> bool:
        """Could a message be started now, if it is not done?"""
        if not self.lease.holds(now) or sequence <= self.work.done_to:
            return False
        segment = self.log.segment_at(sequence)
        lanes = self._own.get(segment.stamp, ()) if segment else ()
        return any(lane.startable and lane.reaches(sequence) and _has(lane, sequence, self.holding) for lane in lanes)

    def note_progress(self, now: float) -> None:
        """Something was finished: it is reported at once, or when the last report is old enough."""
        self._report_soon(max(now, self._reported_at + self._timings.report))

    def _report_soon(self, at: float) -> None:
        self.report_at = min(self.report_at, max(at, self._reported_at + self._timings.report))

    def report(self, full: bool) -> StreamReport:
        """My progress: of the lanes that changed, or of all that are open. A heartbeat has one of each stream."""
        most = limits.REPORT_RUNS_MAX // self.shared_by if full else limits.REPORT_RUNS_MAX
        if full:
            done_to = self.work.done_to
            lanes = [lane for lane in self.lanes.values() if lane.done.floor > done_to or lane.done or lane.pieces]
        else:
            lanes = list(self.work.reported)
        lanes = lanes[: limits.REPORT_LANES_MAX]
        each = max(1, min(limits.REPORT_RANGES_MAX, most // max(1, len(lanes))))
        progress = [lane.progress(each) for lane in lanes]
        said = tuple(p for p in progress if p.runs or p.floor > self.work.done_to)
        tried = self._tried(full, max(1, min(limits.REPORT_TRIED_MAX, most)))
        return StreamReport(self.id, self.intake.taken, self.intake.window, said, tried)

    def _tried(self, full: bool, most: int) -> tuple[Tried, ...]:
        """What was started and is not done: what is news, and for those who missed that, the rest too, in turns."""
        work = self.work
        fresh = list(islice(work.begun, most))
        for sequence in fresh:
            del work.begun[sequence]
        others = work.tried if full else ()
        told = list(islice(dict.fromkeys(chain(fresh, others)), most))
        for sequence in told:
            work.tried[sequence] = work.tried.pop(sequence)
        return tuple(work.tried[sequence] for sequence in told)

    def reported(self, now: float) -> None:
        """My progress was sent."""
        if self.work.outcomes is not None:
            self.work.outcomes.flush()
        self.work.reported = {lane: None for lane in self.work.reported if lane.changed}
        self.intake.reported = self.intake.taken
        self._reported_at = now
        self.report_at = now + self._timings.report if self.work.reported or self.work.begun else math.inf

    def send_report(self, now: float) -> None:
        self._send(self.address, Report(self.me, self.report(full=False)))
        self.reported(now)

    def wake(self, now: float, peers: Mapping[int, Peer]) -> None:
        """Whatever is due."""
        self.work.wake(now)
        if self.leaving:
            self._ask_lanes_when_due(now)
        if self._stamps_question.at <= now:
            self._ask_stamps(now, peers)
        if self.holding.next_deadline() <= now:
            self._ask_frames(now, peers)
        if self._lanes_question.at <= now:
            self._ask_lanes(now)
        if self.report_at <= now:
            self.send_report(now)
        if self._hand_over_at <= now:
            self._ask_hand_over(now)
        if self.is_silent(now):
            self.consider_orphaned(now, peers)
            if not self.given_up and now > self.heard_at + self._timings.orphan_for and not self.lease.holds(now):
                self._give_up(now)

    def next_deadline(self) -> float:
        asked = min(self.report_at, self._stamps_question.at, self._lanes_question.at, self._hand_over_at)
        if self.holding.is_whole and not self.work.schedule:
            return asked  # hot: asked after every datagram
        return min(asked, self.holding.next_deadline(), self.work.next_deadline())

    # --- handing over ---------------------------------------------------------------------------------------------

    @property
    def in_hand(self) -> int:
        """Messages that were handed out and not settled, about."""
        return sum(lane.in_hand for lane in self.lanes.values())

    def load(self, now: float) -> int:
        """Messages in hand, and in line if they can be started."""
        return self.in_hand + (self.work.unstarted if self.lease.holds(now) else 0)

    def consider_handing_over(self, now: float, peers: Mapping[int, Peer]) -> None:
        """At each heartbeat: if much is in line here and another has nothing to do, it gets half of it."""
        current = self.log.current
        lanes = [lane for lanes in self._own.values() for lane in lanes if lane.startable and not lane.segment.keyed]
        if current is None or self.leaving or not lanes or not self.lease.holds(now) or self.lease.orphaned:
            return
        if self.log.complete_to - self.log.oldest >= OPEN_STAMPS_MAX or any(lane.fence is not None for lane in lanes):
            return
        if not self._patience.is_over(self.work.unstarted):
            return
        to = idle_peer([member for member in current.members if member.id != self.me], peers, self._random)
        for lane in lanes if to is not None else ():
            fence = self.work.middle(lane)
            if fence is not None and to is not None:
                self._patience.renew()
                self.work.cut(now, lane, fence)
                self._hand_over = HandOver(
                    self.me, self.id, self.group, lane.stamp, lane.slot, fence, to, self.log.complete_to
                )
                self._hand_over_at = now
                self._tell(f"hands over {lane.stamp}/{lane.slot} from {fence} on to {to:016x}")
                return

    def _ask_hand_over(self, now: float) -> None:
        """Until the stamp is there, or the lane is nobody's to give any more. Also if what stands at the fence turns
        out to be done, by a former owner that is heard again: what is behind it may still be given, so nobody starts
        it before the stamp."""
        ask = self._hand_over
        fenced = ask is not None and any(
            lane.fence == ask.first and lane.mine for lane in self._own.get(ask.stamp, ()) if lane.slot == ask.slot
        )
        if ask is None or not fenced:
            self._hand_over, self._hand_over_at = None, math.inf
            return
        self._hand_over_at = now + ASK_S
        self._send(self.address, ask)

    def is_confirmed(self, now: float) -> bool:
        """For a receiver that hands back: the sender knows what was done here."""
        return self.given_up or self.is_silent(now) or not self._to_confirm()

    def is_left(self, now: float) -> bool:
        """For a receiver that leaves: nothing here needs it any more."""
        return self.keeps(now) is None

    def keeps(self, now: float, *, hands_back: bool = False) -> str | None:
        """What a receiver that leaves waits for here, in words; None if nothing of it needs it any more."""
        if hands_back:
            return None if self.is_confirmed(now) else "word that it knows what was done here"
        if self.given_up or self.log.current is None:
            return None
        mine = [lane for lane in self.lanes.values() if lane.mine and not self._is_over(lane)]
        is_silent = self.is_silent(now)
        lacks = sum(lane.startable and not lane.has_all(self.last) for lane in mine)
        if is_silent and not lacks:
            return None
        if lacks:
            which = f"what we lack of {lacks} lane{'s' * (lacks != 1)} of ours"
            return f"{which}, or to be given up, for it is silent" if is_silent else which
        if any(not lane.granted for lane in mine):
            return "word how far another receiver came whose lanes are ours when it surely has stopped"
        if self._to_confirm():
            return "word that it knows what was done here"
        if not self.held and self.me in self.log.current.member_ids:
            return f"a stamp without us: its newest, {self.log.current.stamp}, still has us"
        return None

    def check_invariants(self) -> None:
        self.log.check_invariants()
        assert len(self._unknown) <= limits.UNKNOWN_FRAMES_MAX and len(self.asked) <= ASKED_MAX
        assert self._unknown_bytes == sum(len(datagram) for _, datagram in self._unknown)
        self.lease.check_invariants()
        self.holding.check_invariants()
        self.work.check_invariants()
        for lane in self.lanes.values():
            lane.check_invariants()


def _can_own(lane: Lane, first: int, last: int) -> bool:
    """Can any of these sequences belong to the lane? With keys, nobody can tell before it is here."""
    return lane.segment.keyed or first + (lane.slot - first) % lane.slots <= last


def _has(lane: Lane, sequence: int, holding: Holding) -> bool:
    """Is a sequence here, and does it belong to this lane?"""
    for frame in holding.within(sequence, sequence):
        shards = frame.run().shards if lane.segment.keyed else None
        shard = NO_SHARD if shards is None else shards[sequence - frame.first]
        return (sequence % lane.slots if shard == NO_SHARD else lane.segment.slot_of_shard(shard)) == lane.slot
    return False
