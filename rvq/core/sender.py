"""A sending end: messages in, frames out, until all groups are done with them. Composes audience, stamps, flow, repair.

Never picks a receiver: it stamps frames with the tables in force, keeps what is not done, and answers who asks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from rvq import limits
from rvq.core.about import NOWHERE, Home, Introducing
from rvq.core.audience import Audience, Ear, Group
from rvq.core.backlog import Backlog
from rvq.core.belief import check_counters
from rvq.core.doors import Doors
from rvq.core.end import PROMPT_S, End
from rvq.core.flow import Flow
from rvq.core.gates import Gates, bits_to_numbers
from rvq.core.lanes import Part, ownership, part_with
from rvq.core.lease import Beats
from rvq.core.machine import Address, Cut, Route, Target, Wall
from rvq.core.progress import GroupDone, common_runs
from rvq.core.repair import SentFrame, SentFrames
from rvq.core.stamps import ANSWER_MAX, Segment, Stamper, segments_of
from rvq.core.table import Table, TableView
from rvq.errors import Closed, WireError
from rvq.names import check_label
from rvq.timings import Timings
from rvq.wire.batch import BATCH_OVERHEAD, Stamped, encode_batch, encode_even_batches, encode_tail
from rvq.wire.codec import decode_control, encode_control, peek, read_data_header, speaker_of
from rvq.wire.fragments import encode_fragments
from rvq.wire.frames import (
    NO_VERSION,
    About,
    Alive,
    AskProgress,
    AskStamps,
    AskTable,
    Control,
    Echo,
    FrameType,
    Goodbye,
    GroupState,
    HandOver,
    LaneAnswer,
    LaneKey,
    Moved,
    Nak,
    Progress,
    Report,
    SenderAlive,
    SenderGoodbye,
    ShardsDone,
    Stamp,
    StreamReport,
    TableFrame,
    Tried,
    label_tag,
)
from rvq.wire.records import LATER, NO_SHARD, Record, Records, make_record

TAIL_S = 0.02
"""Quiet after which a sender says how far its stream goes: so the loss of the last frames is noticed early."""
ECHOES_PER_FRAME = 64
"""So that a heartbeat fits an Ethernet frame; one with more echoes is several frames."""
MANY_ASK_S = 0.01
"""A frame that two receivers ask for within this time is multicast."""
BEHIND_BYTES = 256 * limits.KIB
"""Messages that wait for their frame while frames wait for receivers: enough for the next few frames."""
RELEASE_S = 0.05
"""Pause between looks for frames that are done behind one that is not."""
REPAIR_FRAMES_MAX = 4096
"""Frames that are looked at for one NAK: more than it may be answered with, but for those that are on their way."""
PROGRESS_FRAMES_MAX = 8
"""Frames in answer to one question for progress. What is left out is asked for again."""
TABLE_ASK_S = 0.05
"""Pause between questions for a table that is not known."""


_OF_THOSE_HEARD = frozenset({FrameType.REPORT, FrameType.ASK_PROGRESS, FrameType.HAND_OVER})
"""Nobody says these in another's name, nor before it was heard: so they are not even read."""

_new = tuple.__new__
_NONE_LATER: frozenset[int] = frozenset()


def _frames_of(answers: Iterable[LaneAnswer]) -> list[list[LaneAnswer]]:
    """Answers in as many frames as it takes."""
    found: list[list[LaneAnswer]] = []
    room = 0
    for answer in answers:
        runs = len(answer.runs) // 2
        if runs > room or not found:
            found.append([])
            room = limits.REPORT_RUNS_MAX
        found[-1].append(answer)
        room -= runs
    return found


class SenderMachine(End):
    """One sender of one label."""

    def __init__(
        self,
        label: str,
        id: int,
        *,
        timings: Timings,
        random: Random,
        now: float,
        wall_offset: float,
        frame_bytes: int = limits.FRAME_BYTES_LOOPBACK,
        train_frames: int = 1,
        window: int = limits.RETAINED_BYTES,
        hold: float = math.inf,
        groups: frozenset[str] | None = None,
        home: Home = NOWHERE,
    ) -> None:
        super().__init__(label_tag(check_label(label)), timings.heartbeat, now)
        self.label = label
        self.id = id
        self.last = 0
        """The sequence of the last message that was put in a frame."""
        self._timings, self._random = timings, random
        self.wall = Wall(wall_offset)
        self._frame_bytes = frame_bytes
        self._train_frames = train_frames
        self._full_bytes = frame_bytes * train_frames
        """What is sent at once, at most."""
        self._window = window
        self._hold = hold
        self._only = groups
        """The groups that it sends to; None for all. It does not hear the others."""
        self._held_since: dict[str, float] = {}
        """Groups of which nobody is left, and since when."""
        self._said_held: set[str] = set()
        """Those of them of which it was said that messages are held."""
        self._home, self._started_at = home, self.wall.read(now)
        self._introducing = Introducing()
        self._gates: dict[str, Gates] = {}
        self._reached: dict[str, dict[int, int]] = {}
        """How far each group's shards were when that was last looked at."""
        self._tried: dict[str, dict[int, Tried]] = {}
        self._release_at = -math.inf
        self._audience = Audience(timings)
        self._doors = Doors(random, now, limits.MEMBER_FRAMES_PER_S)
        self._stamper = Stamper(id, label)
        self._done: dict[str, GroupDone] = {}
        self._flow = Flow(timings)
        self._frames = SentFrames()
        self._beats = Beats()
        self._backlog = Backlog()
        self._outbox: deque[tuple[Target, bytes, int]] = deque()
        self._position = 0
        """Bytes of the stream in frames that were made."""
        self._sent_position = 0
        """Bytes of the stream in frames that were sent."""
        self._done_to = 0
        self._ask_table_at: dict[str, float] = {}
        self._gather_from: float | None = None
        """When the first receiver was heard."""
        self._beat_at = now
        self._tail_at = math.inf
        self._tail_pause = TAIL_S
        self._beaten_at = -math.inf

    # --- messages in ----------------------------------------------------------------------------------------------

    @property
    def has_room(self) -> bool:
        """May more be submitted? Retained and waiting messages are bounded together."""
        backlog = self._backlog
        if self._frames.bytes + backlog.bytes >= self._window or len(backlog) >= limits.UNSENT_MESSAGES_MAX:
            return False
        # While receivers are the slower ones, a long line before them would only be moved about.
        return not self._outbox or backlog.bytes < BEHIND_BYTES or self._is_held()

    @property
    def frame_is_full(self) -> bool:
        """There is enough waiting for a whole frame: no use in waiting for more."""
        return self._backlog.bytes >= self._full_bytes

    def submit(
        self,
        now: float,
        body: Any,
        *,
        key: str | bytes | None = None,
        headers: dict[str, Any] | None = None,
        delay: float | None = None,
        ttl: float | None = None,
        urgent: bool = False,
    ) -> None:
        """Take one message. Raises BadMessage and MessageTooLarge."""
        due_at = None if delay is None else self.wall.read(now) + delay
        self.submit_record(make_record(body, key, headers, due_at, ttl, urgent))

    def submit_records(self, records: Records) -> None:
        """Take messages that are packed already."""
        if self.closed:
            raise Closed(f"this sender of {self.label!r} is closed: open another")
        self._backlog.extend(records)
        self.stats.inserted += len(records.datas)

    def submit_record(self, record: Record) -> None:
        """Take one message that is packed already."""
        if self._ended:
            raise Closed(f"this sender of {self.label!r} is closed: open another")
        self._backlog.add(record)
        self.stats.inserted += 1

    @property
    def has_unsent(self) -> bool:
        """Are there messages that are in no frame yet?"""
        return self._backlog.bytes > 0

    @property
    def room_in_frame(self) -> int:
        """Bytes of messages with which neither the frame that is being gathered nor the window would be full."""
        if not self.has_room:
            return 0
        return min(self._full_bytes, self._window - self._frames.bytes) - self._backlog.bytes

    def flush(self, now: float, *, whole: bool = False) -> None:
        """Send what the windows allow; with `whole`, only frames that are full: more comes."""
        self._pump(now, self._full_bytes if whole else 1)

    @property
    def all_done(self) -> bool:
        """Every message that was submitted is done in every group."""
        return not self._backlog and (self.last == 0 or self._done_to >= self.last)

    @property
    def undone(self) -> int:
        """Messages that were submitted and are not done in every group."""
        sent = max(
            (done.undone(self.last, self._shard_of) for done in self._done.values()), default=self.last - self._done_to
        )
        return len(self._backlog) + sent

    def undone_in(self, group: str) -> int:
        """Messages that one group has not done."""
        return len(self._backlog) + self._done[group].undone(self.last, self._shard_of)

    def is_done(self, group: str, sequence: int) -> bool:
        done = self._done.get(group)
        return done is not None and done.is_done(sequence, self._shard_of)

    def is_done_by_all(self, sequence: int) -> bool:
        """Is a message, by its number among those submitted, done in every group?"""
        return bool(self._done) and sequence <= self.last and all(self.is_done(group, sequence) for group in self._done)

    @property
    def waiting_for(self) -> str | None:
        """Why nothing can be sent or done, in words; None if nothing is in the way."""
        groups = self._audience.groups.values()
        if not self._done:
            return f"nobody listens to {self.label!r}: start a receiver (rvq-listen {self.label})"
        held = [group.name for group in groups if group.name in self._done and group.held]
        if held:
            names = ", ".join(repr(name) for name in held)
            return f"nobody of group {names} is left on {self.label!r}: start a receiver of it"
        paused = [name for name in self._done if self._audience.is_paused(name)]
        if paused and self.undone:
            names = ", ".join(map(repr, paused))
            return f"group {names} of {self.label!r} is paused: rvq resume {self.label} {paused[0]}"
        if self._outbox or not self.has_room:
            return f"receivers of {self.label!r} are slower: the window is full"
        return None

    @property
    def has_listeners(self) -> bool:
        """Is anybody there to send to, of any group?"""
        return any(not self._audience.groups[name].held for name in self._done)

    @property
    def tables(self) -> dict[str, TableView]:
        """The table in force of each group, as it is stamped."""
        return {
            group.name: TableView(group.table.version, tuple(member.id for member in group.members))
            for group in self._audience.groups.values()
            if group.table is not None and group.members
        }

    @property
    def gauges(self) -> dict[str, float]:
        """What is so at present, in numbers."""
        return {
            "undone": self.undone,
            "window_used_bytes": self._frames.bytes + self._backlog.bytes,
            "window_bytes": self._window,
        }

    @property
    def gauges_by_group(self) -> dict[str, dict[str, float]]:
        """The same of each group that has a table in force."""
        return {
            group.name: {
                "table_version": group.table.version.counter,
                "slots": sum(member.weight for member in group.members),
                "members": len(group.members),
                "paused": self._audience.is_paused(group.name),
            }
            for group in self._audience.groups.values()
            if group.table is not None
        }

    def close(self, now: float) -> None:
        """Say goodbye. Nothing may be undone, or it is given up."""
        if not self.closed:
            self._say_goodbye(SenderGoodbye(self.id, self.label))

    @property
    def closed(self) -> bool:
        return self._ended

    # --- frames out -----------------------------------------------------------------------------------------------

    def _pump(self, now: float, least: int = 1) -> None:
        """Send what the windows allow, and make frames while there are `least` bytes for one."""
        outbox, out, flow = self._outbox, self._out, self._flow
        sent = False
        while True:
            while outbox and flow.may_send(self._sent_position, outbox[0][2]):
                target, datagram, cost = outbox.popleft()
                self._sent_position += cost
                out.append((target, datagram))
                sent = True
            if outbox or self._backlog.bytes < least or self._is_held() or self._is_gathering(now):
                break
            self._make_frame(now)
        # Also when nothing could be sent: only a probe shows that what was in flight is lost.
        if sent or (outbox and self._tail_at == math.inf):
            self._tail_pause = TAIL_S
            self._tail_at = now + TAIL_S
            self._at_latest(self._tail_at)

    def _is_held(self) -> bool:
        """May nothing be put into frames? What is sent while one group of several has nobody left is in the hands of
        those who were its last, and passes to whoever comes, as everything that they had not done."""
        held = True
        for name in self._done:
            group = self._audience.groups[name]
            if group.closing:
                return True
            held = held and group.held
        return held

    def _is_gathering(self, now: float) -> bool:
        """Before the first frame: groups that are there already must not miss it because another answered sooner."""
        if self.last or self._gather_from is None:
            return False
        waited = now - self._gather_from
        return waited < self._timings.settle or (waited < self._timings.expiry and self._audience.has_newcomers(now))

    def _make_frame(self, now: float) -> None:
        """The next messages in one frame; a large one in many."""
        backlog = self._backlog
        if backlog.has_keys and not self._stamper.keyed:
            self._switch_to_keys(now)
        room, most = self._frame_bytes - BATCH_OVERHEAD, limits.FRAME_MESSAGES_MAX
        if self._train_frames > 1 and backlog.bytes > self._frame_bytes:
            train = self._make_train(now, room, most)
            if len(train) > 1:
                self._send_later(Cut(self._frame_bytes), b"".join(train), len(train))
            elif train:
                self._send_later(Route.DATA, train[0])
            if train:
                return
        records = backlog.take(room, most)
        at = self._stamped(now)
        if records.datas:
            datagrams = [encode_batch(at, records)]
        else:
            record = backlog.take_one()
            records = Records.of((record,))
            datagrams = encode_fragments(at, record, self._frame_bytes)
        self._keep(records, datagrams)
        for datagram in datagrams:
            self._send_later(Route.DATA, datagram)

    def _make_train(self, now: float, room: int, most: int) -> list[bytes]:
        """The next messages in many frames, of one size but the last. None if the first message is too large."""
        backlog, size = self._backlog, self._frame_bytes
        even = backlog.take_even(room, self._train_frames)
        if even is not None:
            records, per_frame = even
            frames = encode_even_batches(self._stamped(now), records, per_frame, size)
            self._frames.add_even(self.last + 1, per_frame, frames, size + limits.DATAGRAM_COST_BYTES)
            self.last += len(records.datas)
            self._position += len(frames) * (size + limits.FLIGHT_COST_BYTES)
            self.stats.routed += len(records.datas)
            return frames
        frames = []
        several = backlog.take_frames(room, most, self._train_frames)
        for records in several:
            frame = encode_batch(self._stamped(now), records, 0 if records is several[-1] else size)
            self._keep(records, [frame])
            frames.append(frame)
        return frames

    def _stamped(self, now: float) -> Stamped:
        first, sent_at = self.last + 1, self.wall.read(now)
        at = (self._tag, self._stamper.newest, self.id, first, sent_at, self._done_to, self._position)
        return _new(Stamped, at)

    def _keep(self, records: Records, datagrams: list[bytes]) -> None:
        """A frame that was made; a large message is many datagrams."""
        count = len(records.datas)
        first, self.last = self.last + 1, self.last + count
        size, many = sum(map(len, datagrams)), len(datagrams)
        cost = size + limits.DATAGRAM_COST_BYTES * many
        frame = _new(SentFrame, (first, self.last, datagrams, cost, records.shards, _NONE_LATER))
        if records.shards is not None and LATER in records.kinds:
            later = frozenset(first + place for place, kind in enumerate(records.kinds) if kind == LATER)
            frame = frame._replace(later=later)
        self._frames.add(frame)
        self._position += size + limits.FLIGHT_COST_BYTES * many
        self.stats.routed += count

    def _send_later(self, target: Target, datagram: bytes, frames: int = 1) -> None:
        """As soon as the receivers have room."""
        self._outbox.append((target, datagram, len(datagram) + limits.FLIGHT_COST_BYTES * frames))

    def _shard_of(self, sequence: int) -> int:
        for frame in self._frames.overlapping(sequence, sequence):
            return NO_SHARD if frame.shards is None else frame.shards[sequence - frame.first]
        return NO_SHARD

    # --- frames in ------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came. Bad ones are counted. Senders hear no data, so no trains either."""
        if self.closed:
            return
        self._notice_nap(now)
        try:
            kind, tag = peek(datagram)
            if kind < FrameType.ALIVE or tag != self._tag:
                return
            is_true = kind not in _OF_THOSE_HEARD or self._audience.is_from(speaker_of(datagram), source)
            if is_true and self._doors.admits(now, source, len(datagram)):
                self._on_control(now, decode_control(datagram), source)
            else:
                self.stats.refused += 1
        except WireError:
            self._refuse(datagram, source)

    def _on_control(self, now: float, frame: Control, source: Address) -> None:
        check_counters(frame, self.wall.read(now))
        is_false = self._audience.is_elsewhere(frame.source, source)
        match frame:
            case Report():
                self._on_report(now, frame.source, frame.report)
            case Alive() if frame.label == self.label and self._is_for(frame.group):
                self._on_alive(now, frame, source)
            case Nak() if frame.stream == self.id:
                self._on_nak(now, frame, source)
            case AskStamps() if frame.stream == self.id:
                self._on_ask_stamps(now, frame, source)
            case AskProgress() if frame.stream == self.id:
                self._on_ask_progress(now, frame, source)
            case HandOver() if frame.stream == self.id:
                self._on_hand_over(now, frame)
            case TableFrame() if frame.label == self.label and self._is_for(frame.group) and not is_false:
                table = Table(frame.version, frame.members, frame.draining, frame.shard_map)
                self._audience.offer(now, frame.group, table)
                self._settle(now, frame.group)
            case Goodbye() if frame.label == self.label:
                if self._audience.goodbye(frame.source, source):
                    self._settle(now, frame.group)

    def _is_for(self, group: str) -> bool:
        return self._only is None or group in self._only

    def _on_alive(self, now: float, frame: Alive, source: Address) -> None:
        heard = next((heard for heard in frame.heard if heard.stream == self.id), None)
        ear = self._audience.hear(now, frame, source, heard, self._beats.sent_at)
        if ear is None:
            return
        self._flow.heard(now, ear.id)
        if heard is None or frame.hello:
            self._beat_soon(now)
        if self._gather_from is None:
            self._gather_from = now
            self._at_latest(now + self._timings.settle)
        if self._audience.lacks_table(ear) and now >= self._ask_table_at.get(ear.group, now):
            self._ask_table_at[ear.group] = now + TABLE_ASK_S
            self._say(source, AskTable(self.id, ear.group, ear.version))
        for report in frame.reports:
            if report.stream == self.id:
                self._on_report(now, ear.id, report)
        group = self._audience.groups[ear.group]
        if group.held or self._is_unsettled(group, ear):
            self._settle(now, ear.group)

    def _is_unsettled(self, group: Group, ear: Ear) -> bool:
        """Does a heartbeat say anything that those in force do not reflect?"""
        table = group.table
        if table is None or ear.version != table.version:
            return True
        if not table.has(ear.id):
            return False
        in_force = ear.id in group.everyone
        return in_force == (ear.struck or ear.gone) or (ear.leaving and ear.id not in group.draining)

    def _on_report(self, now: float, receiver: int, report: StreamReport) -> None:
        ear = self._audience.ears.get(receiver)
        if report.stream != self.id or ear is None or ear.group not in self._done:
            return
        # Nobody can have taken what was not sent.
        self._flow.report(now, receiver, min(report.taken, self._sent_position), report.window)
        done = self._done[ear.group]
        if ear.both_ways_at == -math.inf or not done.had(receiver):
            return  # it never heard us, or never had a lane of what is open: so it has done nothing of it
        moved = [done.merge(lane, self.last) for lane in report.lanes]
        if any(moved):
            self._advance(now)
        elif moved:
            self._release_above(now)
        if report.tried:
            self._note_tries(ear.group, report.tried)
        if moved and done.has_older:
            self._open_gates(now, ear.group)
        self._pump(now)

    def _note_tries(self, group: str, tried: Iterable[Tried]) -> None:
        """Messages that were started: their heirs go on counting."""
        known = self._tried.setdefault(group, {})
        done_to = self._done[group].done_to
        for one in tried:
            before = known.get(one.sequence)
            if before is None and len(known) >= limits.TRIED_MAX:
                self._forget_tries(group)
            news = before is None or before.attempts < one.attempts
            if news and done_to < one.sequence <= self.last and len(known) < limits.TRIED_MAX:
                known[one.sequence] = one if before is None else one._replace(first_owner=before.first_owner)

    def _forget_tries(self, group: str) -> None:
        done, known = self._done[group], self._tried[group]
        for sequence in [sequence for sequence in known if done.is_done(sequence, self._shard_of)]:
            del known[sequence]

    def _release_above(self, now: float) -> None:
        """One message can keep the stream from being done up to it for long: it was delayed, is retried, or its
        handler is slow. If memory is short, what is done behind it is let go all the same."""
        if now < self._release_at or self._frames.bytes < self._window // 2:
            return
        self._release_at = now + RELEASE_S
        for first, last in common_runs([done.done_runs(self.last) for done in self._done.values()]):
            self._frames.release_run(first, last)

    def _open_gates(self, now: float, name: str) -> None:
        """With keys: shards that are through with the older segments may go on in the newest."""
        gates, done = self._gates.get(name), self._done[name]
        if gates is None:
            return
        gates.advance(lambda sequence: done.is_done(sequence, self._shard_of))
        reached = gates.reached(done.starts)
        if reached != self._reached.get(name):
            self._reached[name] = reached
            self._beat_soon(now)

    def _close_gates(self, name: str, at: int) -> None:
        """A group's segment ended before `at`: what is not done of its keys must be done before they go on."""
        gates, done = self._gates[name], self._done[name]
        for frame in self._frames.overlapping(gates.closed_to + 1, at - 1):
            if frame.shards is None or not frame.datagrams:
                continue
            for sequence, shard in enumerate(frame.shards, frame.first):
                if shard == NO_SHARD or sequence in frame.later or not gates.closed_to < sequence < at:
                    continue
                if not done.is_done(sequence, self._shard_of):
                    gates.close(shard, sequence)
        gates.closed_to = max(gates.closed_to, at - 1)

    def _advance(self, now: float) -> None:
        """Some group is done with more: let go of what all are done with."""
        if not self._done:
            return
        done_to = min(done.done_to for done in self._done.values())
        if done_to > self._done_to:
            self.stats.acked += done_to - self._done_to
            self._done_to = done_to
            self._frames.release(done_to)
        for known in self._tried.values():
            for sequence in [sequence for sequence in known if sequence <= self._done_to]:
                del known[sequence]
        oldest = min(done.oldest_stamp for done in self._done.values())
        if oldest > self._stamper.oldest:
            self._stamper.close_before(oldest)
            if self._stamper.keyed:
                self._beat_soon(now)  # keyed messages of the next segment wait for this
        if self.all_done:
            self._tail_at = math.inf

    def _walk(self, now: float) -> None:
        """With keys, what is done may be known of each message before it is of every lane."""
        if self._stamper.keyed and not self.all_done:
            walked = [done.walk(self.last, self._shard_of) for done in self._done.values()]
            if any(walked):
                self._advance(now)

    def _wanted(self, nak: Nak) -> Iterator[tuple[SentFrame, Sequence[bytes]]]:
        """What a NAK asks for, as far as it is kept: worked out as far as it is looked at."""
        for first, last in zip(nak.runs[::2], nak.runs[1::2], strict=True):
            for frame in self._frames.overlapping(first, last):
                if frame.datagrams:
                    yield frame, frame.datagrams
        for sequence, parts in nak.fragments:
            for frame in self._frames.overlapping(sequence, sequence):
                yield frame, [frame.datagrams[part] for part in parts if part < len(frame.datagrams)]

    def _on_nak(self, now: float, nak: Nak, source: Address) -> None:
        budget = min(limits.REPAIR_BYTES_MAX, max(self._flow.window_of(nak.source) // 2, limits.DATAGRAM_BYTES_MAX))
        for frame, datagrams in islice(self._wanted(nak), REPAIR_FRAMES_MAX):
            asked = self._frames.asked(frame)
            if now - asked.multicast_at < MANY_ASK_S:
                continue  # it is on its way to everyone
            target: Target = source
            if asked.by != nak.source and now - asked.at < MANY_ASK_S:
                target = Route.DATA
                asked.multicast_at = now
            asked.by, asked.at = nak.source, now
            for datagram in datagrams:
                budget -= len(datagram)
                if budget < 0 or not self._doors.may_send(now, source, len(datagram)):
                    return
                self.stats.repaired += 1
                self._out.append((target, datagram))

    def _on_ask_stamps(self, now: float, ask: AskStamps, source: Address) -> None:
        wanted = range(max(ask.first, self._stamper.oldest), min(ask.last, self._stamper.newest) + 1)
        for number in wanted[:ANSWER_MAX]:
            datagram = encode_control(self._stamper.open[number], self._tag)
            if not self._doors.may_send(now, source, len(datagram)):
                return
            self._out.append((source, datagram))

    def _on_ask_progress(self, now: float, ask: AskProgress, source: Address) -> None:
        """An heir starts on the answer, so a lane is left out until its former owners must have stopped."""
        done = self._done.get(ask.group)
        if done is None or not done.had(ask.source):
            return
        segments = segments_of(self._stamper.open.values(), ask.group)
        owners: dict[int, list[list[Part]]] = {}
        answers = []
        for question in ask.lanes:
            answer = done.answer(question)
            key = LaneKey(question.stamp, question.slot, question.first)
            if answer is not None and self._may_answer(now, ask.source, key, segments, owners):
                answers.append(answer)
        # What was tried goes ahead, so that it is known when the heir starts.
        *ahead, last = self._tried_of(ask.group, {(answer.stamp, answer.slot) for answer in answers})
        for tried in ahead:
            self._say(source, Progress(self.id, ask.nonce, (), tried))
        for some in _frames_of(answers)[:PROGRESS_FRAMES_MAX]:
            self._say(source, Progress(self.id, ask.nonce, tuple(some), last))
            last = ()

    def _tried_of(self, group: str, lanes: Container[tuple[int, int]]) -> list[tuple[Tried, ...]]:
        """What was started of these lanes and is not done, for one frame each; at least for one."""
        done, known = self._done[group], self._tried.get(group, {})
        undone = (sequence for sequence in sorted(known) if not done.is_done(sequence, self._shard_of))
        mine = (known[sequence] for sequence in undone if done.lane_of(sequence, self._shard_of) in lanes)
        told = list(islice(mine, limits.REPORT_TRIED_MAX * PROGRESS_FRAMES_MAX))
        starts = range(0, max(1, len(told)), limits.REPORT_TRIED_MAX)
        return [tuple(told[start : start + limits.REPORT_TRIED_MAX]) for start in starts]

    def _may_answer(
        self, now: float, asker: int, key: LaneKey, segments: list[Segment], owners: dict[int, list[list[Part]]]
    ) -> bool:
        if key.stamp not in owners:
            index = next((i for i, segment in enumerate(segments) if segment.stamp == key.stamp), None)
            owners[key.stamp] = [] if index is None else ownership(segments, index)
        lanes = owners[key.stamp]
        # By where it begins: nothing lies in the part of a segment that another followed before anything was sent.
        part = next((p for p in lanes[key.slot] if p.first == key.first), None) if key.slot < len(lanes) else None
        if part is None or part.owner != asker:
            return False
        return all(self._audience.has_stopped(now, loss, segments) for loss in part.losses)

    def _on_hand_over(self, now: float, ask: HandOver) -> None:
        """An owner has stopped before a part of its lane, for good. The one that it names gets that part; or the owner
        itself again, if that one is not there any more."""
        group = self._audience.groups.get(ask.group)
        segments = segments_of(self._stamper.open.values(), ask.group)
        index = next((i for i, segment in enumerate(segments) if segment.stamp == ask.stamp), None)
        if group is None or ask.group not in self._done or index is None or segments[index].keyed:
            return
        if len(self._stamper.open) >= limits.OPEN_STAMPS_MAX // 2:
            return  # it asks again
        lanes = ownership(segments, index)
        part = part_with(lanes[ask.slot], ask.first) if ask.slot < len(lanes) else None
        if part is None or part.owner != ask.source or part.first == ask.first:
            return  # this was granted before, or the lane has another owner now
        if any(loss.segment.stamp > ask.known for loss in part.losses):
            return  # it lost the lane since, and has it again: by now it may have started what it gave away then
        there = any(member.id == ask.to for member in group.members)
        moved = Moved(ask.stamp, ask.slot, ask.first, ask.to if there else ask.source)
        stamp = self._stamper.move(self.last + 1, ask.group, moved)
        self._open_segment(stamp, ask.group)
        if stamp.keyed:
            self._close_gates(ask.group, stamp.at)
            self._open_gates(now, ask.group)
        self._announce(now, stamp)
        self.events.append(f"stamp {stamp.number} from {stamp.at}: {ask.group} hands {ask.first}… to {moved.to:016x}")

    # --- switching ------------------------------------------------------------------------------------------------

    def _settle(self, now: float, name: str) -> None:
        """Judge a group again, and stamp it if those in force changed."""
        audience = self._audience
        if name not in audience.groups:
            return
        group = audience.groups[name]
        was_held, was_closing, before = group.held, group.closing, group.everyone
        if audience.settle(now, name):
            self._switch(now, group, before)
        if (was_held, was_closing) != (group.held, group.closing):
            self._admit_to_flow(now)
            self._beat_soon(now)
        self._tell_hold(group, was_held)
        if not group.held:
            self._held_since.pop(name, None)
            self._pump(now)
        elif name in self._done:
            self._pump(now)
            over = now >= self._held_since.setdefault(name, now) + self._hold
            if over and not self._audience.somebody_is_there(now, name):
                self._give_up(now, name)

    def _give_up(self, now: float, name: str) -> None:
        """Nobody of a group came back for as long as this sender holds messages: it goes on without the group."""
        undone = self._done[name].undone(self.last, self._shard_of)
        self.events.append(f"group {name}: nobody came back in {self._hold:g} s: gave up {undone} messages of it")
        self.stats.lost += undone
        for known in (self._done, self._gates, self._reached, self._tried, self._held_since):
            known.pop(name, None)
        self._said_held.discard(name)
        self._audience.forget(name)
        if not self._done:
            # As if nobody had ever listened: what has no owner any more is let go, and the next group starts anew.
            self._frames.release(self.last)
            self._outbox.clear()
            self._sent_position = self._position
            self.stats.acked += self.last - self._done_to - undone
            self._done_to = self.last
        self._admit_to_flow(now)
        self._announce(now, self._stamper.drop(self.last + 1, name))

    def _switch(self, now: float, group: Group, before: frozenset[int]) -> None:
        after = group.everyone
        silent = tuple(self._audience.silences(now, before, after))
        gone = tuple(sorted(before - after - {silence.id for silence in silent}))
        assert group.table is not None
        version = group.table.version
        stamp = self._stamper.switch(
            self.last + 1, group.name, version, group.members, group.draining, silent, gone, group.shard_map
        )
        self._open_segment(stamp, group.name)
        if stamp.keyed:
            self._close_gates(group.name, stamp.at)
            self._open_gates(now, group.name)
        self._admit_to_flow(now)
        self._announce(now, stamp)
        names = " ".join(f"{member.id:016x}"[:4] for member in group.members)
        self.events.append(f"stamp {stamp.number} from {stamp.at}: {group.name} [{names}]")

    def _admit_to_flow(self, now: float) -> None:
        there = [group for group in self._audience.groups.values() if group.closing or not group.held]
        in_force: frozenset[int] = frozenset().union(*(group.everyone for group in there))
        self._flow.admit(now, in_force, self._sent_position)
        self._know_whom_i_work_with(now, in_force)

    def _know_whom_i_work_with(self, now: float, in_force: Iterable[int]) -> None:
        """Strangers must not take their place."""
        ears = (self._audience.ears.get(receiver) for receiver in in_force)
        self._doors.know(now, [ear.address for ear in ears if ear is not None and ear.address is not None])

    def _switch_to_keys(self, now: float) -> None:
        stamp = self._stamper.switch_to_keys(self.last + 1, self._audience.take_keys())
        for name in self._done:
            self._open_segment(stamp, name)
        self._announce(now, stamp)

    def _open_segment(self, stamp: Stamp, name: str) -> None:
        done = self._done.get(name)
        if done is None:
            done = self._done[name] = GroupDone(stamp.at)
        if stamp.keyed and name not in self._gates:
            self._gates[name] = Gates(stamp.at - 1)
        entry = self._stamper.groups[name]
        done.switch(stamp.number, stamp.at, stamp.keyed, entry.members, entry.shard_map, entry.draining)

    def _announce(self, now: float, stamp: Stamp) -> None:
        """Ahead of the frames that it is for, on the same way."""
        self._advance(now)
        self._say(Route.DATA, stamp)
        self._beat_soon(now)

    def _tell_hold(self, group: Group, was_held: bool) -> None:
        """That nobody is left; and as soon as there is anything to hold, that it is held."""
        name = group.name
        if name not in self._done:
            return
        if group.held and not was_held:
            self.events.append(f"group {name}: nobody is left")
        if group.held and name not in self._said_held and self.undone_in(name):
            self._said_held.add(name)
            self.events.append(f"group {name}: holding messages until somebody is there")
        if was_held and not group.held:
            self._said_held.discard(name)
            self.events.append(f"group {name}: somebody is there")

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Whatever is due."""
        if self.closed:
            return
        self._notice_nap(now)
        if now >= self._beat_at:
            for name in list(self._audience.groups):
                self._settle(now, name)
            self._flow.find_slowest(now)
            self._audience.tidy(now)
            self._walk(now)
            self._beat(now)
            self._pump(now)
        if now >= self._tail_at:
            self._send_tail(now)
        self._wake_at(min(self._beat_at, self._tail_at))
        if self._backlog and not self.last and self._gather_from is not None:
            self._pump(now)
            if self._is_gathering(now):
                self._at_latest(max(now + PROMPT_S, self._gather_from + self._timings.settle))

    def _notice_nap(self, now: float) -> None:
        nap = self._naps.slept(now)
        if nap:
            self._audience.forgive(nap)
            self._flow.forgive(nap)
            for name in self._held_since:
                self._held_since[name] += nap

    def _beat_soon(self, now: float) -> None:
        # A heartbeat to a thousand receivers is many frames: then they are further apart.
        pause = PROMPT_S * (1 + len(self._audience.ears) // ECHOES_PER_FRAME)
        self._beat_at = min(self._beat_at, max(now, self._beaten_at + pause))
        self._at_latest(self._beat_at)

    def _beat(self, now: float) -> None:
        """Heartbeat: how far the stream goes, what is done, who was heard."""
        self._beaten_at = now
        self._beat_at = now + self._timings.heartbeat
        counter = self._beats.beat(now)
        self._know_whom_i_work_with(now, {id for group in self._audience.groups.values() for id in group.everyone})
        echoes = self._echoes()
        groups = tuple(self._group_state(name) for name in self._done)
        for start in range(0, max(1, len(echoes)), ECHOES_PER_FRAME):
            if start:  # once in each heartbeat is enough
                groups = tuple(group._replace(shards=()) for group in groups)
            self._say(
                Route.CONTROL,
                SenderAlive(
                    self.id,
                    self.label,
                    counter,
                    hello=not self._audience.ears,
                    last=self.last,
                    position=self._sent_position,
                    oldest_stamp=self._stamper.oldest,
                    newest_stamp=self._stamper.newest,
                    groups=groups,
                    echoes=echoes[start : start + ECHOES_PER_FRAME],
                ),
            )
        self._introduce(now)

    def _introduce(self, now: float) -> None:
        """Who I am, to those who look on."""
        counters, ends, newest = self.stats.counters(), len(self._audience.ears) + 1, self._stamper.newest
        if not self._introducing.is_due(now, ends, counters, newest):
            return
        self._say(
            Route.ABOUT,
            About(
                self.id,
                self.label,
                group="",
                recorder=False,
                paused=False,
                host=self._home.host,
                pid=self._home.pid,
                started_at=self._started_at,
                weight=0,
                version=NO_VERSION,
                first_slot=0,
                own_slots=0,
                slots=0,
                stamp=newest,
                stamp_at=self._stamper.open[newest].at if newest in self._stamper.open else 0,
                backlog=len(self._backlog) + self.last - self._done_to,
                lag=0.0,
                window_used=self._frames.bytes + self._backlog.bytes,
                window=self._window,
                counters=counters,
            ),
        )

    def _group_state(self, name: str) -> GroupState:
        group = self._audience.groups[name]
        assert group.table is not None
        done = self._done[name]
        shards: list[ShardsDone] = []
        if self._stamper.keyed and done.has_older:
            reached = self._gates[name].reached(done.starts)
            shards = [ShardsDone(stamp, bits_to_numbers(bits)) for stamp, bits in reached.items()]
        if len(shards) > limits.GATES_MAX:
            # The newest is what most wait for. Of the others, some each time.
            turn = self._beats.counter % (len(shards) - 1)
            others = shards[turn:-1] + shards[:turn]
            shards = [*others[: limits.GATES_MAX - 1], shards[-1]]
        return GroupState(name, group.table.version, done.done_to, group.held, tuple(shards))

    def _echoes(self) -> tuple[Echo, ...]:
        echoes = []
        for group in self._audience.groups.values():
            for receiver in sorted(group.everyone):
                ear = self._audience.ears.get(receiver)
                if ear is not None and ear.counter and not ear.struck and not ear.gone:
                    ear.echoed_at = ear.heard_at
                    echoes.append(Echo(receiver, ear.counter))
        return tuple(echoes)

    def _send_tail(self, now: float) -> None:
        """A probe behind the data, further and further apart while nothing changes."""
        if self.all_done or not self.last:
            self._tail_at = math.inf
            return
        self._tail_pause = min(2 * self._tail_pause, self._timings.heartbeat)
        self._tail_at = now + self._tail_pause
        position = self._sent_position
        sent_last = self.last if not self._outbox else self._last_sent()
        if sent_last:
            stamped = self._stamped(now)._replace(first=sent_last, position=position)
            self._out.append((Route.DATA, encode_tail(stamped)))

    def _last_sent(self) -> int:
        """The last sequence of which everything has left the outbox."""
        return read_data_header(self._outbox[0][1]).first - 1

    def check_invariants(self) -> None:
        self._audience.check_invariants()
        self._stamper.check_invariants()
        self._flow.check_invariants()
        self._frames.check_invariants()
        self._beats.check_invariants()
        for done in self._done.values():
            done.check_invariants()
        assert self._done_to == min((done.done_to for done in self._done.values()), default=self._done_to)
        assert self._sent_position + sum(cost for _, _, cost in self._outbox) == self._position
        self._backlog.check_invariants()
        for gates in self._gates.values():
            gates.check_invariants()
