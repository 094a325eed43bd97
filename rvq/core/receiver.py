"""A receiving end: frames in, messages out, each started by its one owner. Composes membership and streams.

Decides nothing about ownership itself: stamps do, and leases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from random import Random

from rvq import limits
from rvq.core.about import NOWHERE, Home, Introducing
from rvq.core.belief import check_counters
from rvq.core.doors import Doors
from rvq.core.end import PROMPT_S, End
from rvq.core.lanes import Piece
from rvq.core.lease import Beats
from rvq.core.machine import Address, Route, Wall
from rvq.core.membership import Membership
from rvq.core.orders import Orders
from rvq.core.recorders import Recorders
from rvq.core.stream import Stream
from rvq.core.table import Table, TableView, index_of, slots_held
from rvq.core.work import Handed, Work
from rvq.errors import BusError, WireError
from rvq.message import Message, Settler
from rvq.names import check_group, check_label
from rvq.timings import Timings
from rvq.wire.codec import decode_control, encode_control, peek, read_data_header, speaker_of
from rvq.wire.frames import (
    NO_VERSION,
    About,
    Alive,
    AskStamps,
    AskTable,
    Control,
    DataHeader,
    FrameType,
    Goodbye,
    Handled,
    HandledRun,
    Nak,
    Order,
    OrderDone,
    OrderKind,
    OrderOutcome,
    Progress,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    TableFrame,
    label_tag,
)
from rvq.wire.train import read_train, split

SPREAD_S = 0.0002
"""Heartbeats in answer to a new sender are this far apart on average, over all receivers."""
MAKE_ROOM_S = 0.05
"""Pause between looking for copies that can be dropped."""

_DATA_MAX = bytes([FrameType.TAIL])
"""Compared with the type byte of a datagram: data frames are up to this. Hot, so without reading the header twice."""


_STAMP = int(FrameType.STAMP)
_OF_SENDERS = frozenset({FrameType.SENDER_ALIVE, _STAMP, FrameType.PROGRESS, FrameType.SENDER_GOODBYE})
_ASKED_BY_PEERS = frozenset({FrameType.NAK, FrameType.ASK_STAMPS})
_UNHEARD = frozenset({FrameType.REPORT, FrameType.ASK_PROGRESS, FrameType.ORDER_DONE, FrameType.ABOUT})


def _has_no_urgent(stream: Stream) -> bool:
    return not stream.work.has_urgent


class ReceiverMachine(End):
    """One receiver of one label in one group."""

    is_recorder = False
    unheard: frozenset[int] = _UNHEARD | {FrameType.HAND_OVER, FrameType.HANDLED}
    """Frames that are nothing to a receiver: it does not even read them."""
    work_kind: type[Work] = Work

    def __init__(
        self,
        label: str,
        id: int,
        *,
        group: str,
        weight: int,
        timings: Timings,
        random: Random,
        now: float,
        wall_offset: float = 0.0,
        receive_bytes: int = limits.RECEIVE_BUFFER_BYTES,
        settler: Settler | None = None,
        tracked: bool = False,
        hand_over: bool = False,
        home: Home = NOWHERE,
    ) -> None:
        if type(weight) is not int or not 1 <= weight <= limits.WEIGHT_MAX:
            raise BusError(f"weight={weight!r} is not a weight: give a whole number from 1 to {limits.WEIGHT_MAX}")
        super().__init__(label_tag(check_label(label)), timings.heartbeat, now)
        self.label, self.group = label, check_group(group)
        self.id = id
        self.leaving = False
        self.membership = Membership(id, weight, timings, now)
        self.recorders = Recorders(timings.expiry)
        self.orders = Orders()
        self.streams: dict[int, Stream] = {}
        self._timings, self._random = timings, random
        self._receive_bytes = receive_bytes
        self._settler = settler
        self._tracked = tracked
        self._hands_over = hand_over
        self.wall = Wall(wall_offset)
        self._beats = Beats()
        self._doors = Doors(random, now, limits.PEER_FRAMES_PER_S)
        self._home, self._started_at = home, self.wall.read(now)
        self._introducing = Introducing()
        self._lag = 0.0
        """The longest that a message waited to be handed out, since that was told last."""
        self._streams_at: dict[Address, int] = {}
        """Who speaks from where: one from each address."""
        self._ended_streams: dict[int, bool] = {}
        """Streams that are no longer followed: True if they said goodbye, False if they were forgotten."""
        self._told = 0
        """How many frames recorders were sent."""
        self._handing_back = False
        self._kept_by: str | None = None
        """What it waits for before it leaves, as of when it was woken last."""
        self._rests = True
        """May nothing be started, because the group is paused or it is not known yet whether it is?"""
        self._asks_until = now + timings.first_table
        """Then nobody is there who could tell."""
        self._held = 0
        """Bytes of frames that are kept, at most: counted up with each datagram, and anew with each heartbeat."""
        self._make_room_at = now
        self._beat_at = now
        self._beaten_at = -math.inf
        self._turn = 0

    # --- messages out ---------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Is anything in line? Whether it may start is found out by `take`."""
        if not (self._handing_back or self._rests):
            for stream in self.streams.values():  # hot: asked after every datagram
                if stream.work.ready:
                    return True
        return False

    @property
    def inheriting(self) -> bool:
        """Will more come that another had, once its lease must be over?"""
        return any(stream.inheriting for stream in self.streams.values())

    def take(self, now: float, max: int, handed: list[Handed] | None = None) -> list[Message]:
        """Up to so many messages, which count as started. Streams take turns.

        `handed` is told of them, so that `acknowledge_handed` can do it for all of a frame's at once.
        """
        taken: list[Message] = []
        if self._handing_back or self._rests:
            return taken
        for stream in self._in_turn():
            if stream.work.ready and stream.lease.holds(now):
                taken += stream.work.take(now, max - len(taken), handed)
                if stream.work.spoilt:
                    stream.ask_again_for_spoilt(now)
                    self._at_latest(stream.next_deadline())
                if stream.work.waiting:
                    self._at_latest(stream.next_deadline())
                if stream.work.begun:
                    stream.report_at = now
                if stream.work.reported or stream.work.begun:
                    self._note_progress(now, stream)
                if len(taken) >= max:
                    break
        if taken:
            last = taken[-1]
            self._note_lag(now, last.sent_at if last.due_at is None else last.due_at)
        return taken

    def _note_lag(self, now: float, since: float) -> None:
        """One of each batch is looked at."""
        lag = self.wall.read(now) - since
        if lag > self._lag:
            self._lag = lag

    def _in_turn(self) -> list[Stream]:
        """The streams in the order in which they are asked this time. Those with urgent messages come first."""
        streams = list(self.streams.values())
        if len(streams) > 1:
            turn = self._turn % len(streams)
            streams = streams[turn:] + streams[:turn]
            streams.sort(key=_has_no_urgent)
            self._turn += 1
        return streams

    def acknowledge(self, now: float, message: Message) -> None:
        """A message is done."""
        stream = self._stream_of(message)
        if stream is not None and stream.work.acknowledge(now, message):
            self._note_progress(now, stream)

    def acknowledge_handed(self, now: float, handed: Iterable[Handed]) -> None:
        """Everything of what `take` told of is done."""
        for one in handed:
            if isinstance(one, Message):
                self.acknowledge(now, one)
            else:
                self._acknowledge_run(now, *one)

    def acknowledge_all(self, now: float, messages: Iterable[Message]) -> None:
        """Many at once: those of one frame that stand together cost one step."""
        piece: Piece | None = None
        start = stop = 0
        for message in messages:
            if message.origin is piece and message.place == stop and message.key is None:
                stop += 1
                continue
            if piece is not None:
                self._acknowledge_run(now, piece, start, stop)
            if message.key is not None:
                self.acknowledge(now, message)
                piece = None
            else:
                assert isinstance(message.origin, Piece)
                piece, start, stop = message.origin, message.place, message.place + 1
        if piece is not None:
            self._acknowledge_run(now, piece, start, stop)

    def _acknowledge_run(self, now: float, piece: Piece, start: int, stop: int) -> None:
        stream = self.streams.get(piece.stream)
        if stream is not None and stream.work.acknowledge_run(now, piece, start, stop):
            self._note_progress(now, stream)

    def retry(self, now: float, message: Message, delay: float = 0.0) -> None:
        """A message failed: hand it out again after `delay`."""
        stream = self._stream_of(message)
        if stream is not None:
            stream.work.retry(now, message, delay)
            self._at_latest(now + delay)

    def give_back(self, now: float, message: Message) -> None:
        """A message that was taken could not be started after all: it starts when it may."""
        stream = self._stream_of(message)
        if stream is not None:
            stream.work.give_back(message)

    def reject(self, now: float, message: Message, reason: str = "") -> bool:
        """A message will never be handled. For its sender that is done. False if it was done with before."""
        stream = self._stream_of(message)
        if stream is None or not stream.work.reject(now, message):
            return False
        self.events.append(f"rejected {message.id}{f': {reason}' if reason else ''}")
        self._note_progress(now, stream)
        return True

    def first_owner(self, message: Message) -> int:
        """Who tried it first, as far as is known."""
        stream = self._stream_of(message)
        return self.id if stream is None else stream.work.first_owner(message)

    @property
    def has_urgent(self) -> bool:
        """Is there anything that should not wait behind what was taken?"""
        return not self._handing_back and any(stream.work.has_urgent for stream in self.streams.values())

    def may_start(self, now: float, stream: int, sequence: int) -> bool:
        """Could this receiver start that message now, if it is not done?"""
        followed = self.streams.get(stream)
        return followed is not None and not (self._handing_back or self._rests) and followed.may_start(now, sequence)

    def may_continue(self, now: float, message: Message) -> bool:
        """Is a message that was started still this receiver's?"""
        return message.origin.may_continue(now)

    def is_anothers(self, message: Message) -> bool:
        """Has its sender given it to another, as far as is known here?"""
        stream = self._stream_of(message)
        return stream is None or stream.work.is_anothers(message)

    def is_settled(self, message: Message) -> bool:
        """Was it acknowledged or rejected, or is it to be handed out again?"""
        stream = self._stream_of(message)
        return stream is None or stream.work.is_settled(message)

    def _stream_of(self, message: Message) -> Stream | None:
        return self.streams.get(message.sender)

    def _note_progress(self, now: float, stream: Stream) -> None:
        stream.note_progress(now)
        if stream.report_at <= now:
            stream.send_report(now)
        else:
            self._at_latest(stream.report_at)

    @property
    def table(self) -> TableView | None:
        """The newest table that this receiver belongs to."""
        table = self.membership.table
        if table is None:
            return None
        members = tuple(member.id for member in table.members)
        return TableView(table.version, members, index_of(table.members, self.id))

    @property
    def gauges(self) -> dict[str, float]:
        """What is so at present, in numbers."""
        members = self.membership.table.members if self.membership.table else ()
        return {
            "table_version": self.membership.version.counter,
            "slots": sum(member.weight for member in members if member.id == self.id),
            "members": len(members),
            "backlog": sum(stream.in_hand + stream.work.unstarted for stream in self.streams.values()),
            "paused": self.paused,
            "leaving": self.leaving,
        }

    # --- leaving --------------------------------------------------------------------------------------------------

    def leave(self, now: float, *, drain: bool = True) -> None:
        """Go in good order: finish what is ours and then say goodbye; without `drain`, hand it back unstarted."""
        self._handing_back = self._handing_back or not drain
        if not self.leaving:
            self.leaving = True
            self.membership.leave(now)
            for stream in self.streams.values():
                stream.leave(now)
            self._kept_by = self._find_what_keeps(now)
            self._beat_at = now
        self._at_latest(now)

    def _leave_if_done(self, now: float) -> None:
        self._kept_by = self._find_what_keeps(now)
        if self._kept_by is None:
            self.say_goodbye()

    @property
    def waiting_for(self) -> str | None:
        """Why it starts nothing, or what it has to finish before it can leave, in words. None if it is not to leave and
        nothing is in its way, or if it has left."""
        if self.left:
            return None
        if self.paused:
            return f"group {self.group!r} of {self.label!r} is paused: rvq resume {self.label} {self.group}"
        if not self.leaving:
            return None
        streams = self.streams.values()
        counts = (
            (sum(stream.in_hand for stream in streams), "in hand"),
            (sum(stream.work.unstarted for stream in streams), "in line"),
            (sum(stream.work.waiting for stream in streams), "waiting for their time or next try"),
        )
        messages = ", ".join(f"{count} {what}" for count, what in counts if count)
        if messages:
            of_whom = f" ({self._kept_by})" if self._kept_by is not None else ""
            return f"messages that are ours: {messages}{of_whom}"
        return self._kept_by

    @property
    def paused(self) -> bool:
        """Does the group start nothing, because somebody said so?"""
        return self.orders.pause.paused

    def _find_what_keeps(self, now: float) -> str | None:
        """What one who leaves waits for, and of which sender. Where it is several, the first one's is told."""
        streams = self.streams.values()
        hands_back = self._handing_back or (self.paused and not any(stream.in_hand for stream in streams))
        reasons = ((stream.id, stream.keeps(now, hands_back=hands_back)) for stream in streams)
        kept = [f"sender {id:016x}: {why}" for id, why in reasons if why is not None]
        if len(kept) > 1:
            return f"{kept[0]}, and {len(kept) - 1} more sender{'s' * (len(kept) > 2)}"
        return kept[0] if kept else None

    def say_goodbye(self) -> None:
        """Leave now. Whoever inherits need not wait."""
        if not self.left:
            self._tell_recorders(False)
            self._say_goodbye(Goodbye(self.id, self.label, self.group))

    @property
    def left(self) -> bool:
        return self._ended

    # --- frames in ------------------------------------------------------------------------------------------------

    def receive(self, now: float, datagram: bytes, source: Address, size: int = 0) -> None:
        """A datagram came; with `size`, a train of frames of that size. Bad ones are counted."""
        if self._ended:
            return
        if size and size < len(datagram):
            self._receive_train(now, datagram, source, size)
            return
        if now > self._naps.late_at:
            self._notice_nap(now)
        try:
            if datagram[4:5] <= _DATA_MAX:
                self._on_data(now, read_data_header(datagram), datagram, source)
            else:
                kind, tag = peek(datagram)
                if tag != self._tag or kind in self.unheard:
                    return
                if self._is_true(kind, speaker_of(datagram), source) and self._doors.admits(now, source, len(datagram)):
                    self._on_control_datagram(now, datagram, source)
                else:
                    self.stats.refused += 1
        except WireError:
            self._refuse(datagram, source)

    def _is_true(self, kind: int, speaker: int, source: Address) -> bool:
        """Looked at before anything is read: does he speak from there in whose name it is?"""
        if kind in _OF_SENDERS:
            stream = self.streams.get(speaker)
            return stream is None or stream.address == source or (kind == _STAMP and source in stream.asked)
        return kind not in _ASKED_BY_PEERS or self.membership.is_from(speaker, source)

    def _receive_train(self, now: float, datagram: bytes, source: Address, size: int) -> None:
        """As a whole if that can be; else frame by frame."""
        self._notice_nap(now)
        try:
            train = read_train(datagram, size)
        except WireError:
            train = None
        stream = self.streams.get(train.header.stream) if train is not None else None
        if (
            train is not None
            and stream is not None
            and stream.address == source
            and train.header.label_tag == self._tag
        ):
            self._held += len(datagram) + limits.DATAGRAM_COST_BYTES
            if self._held > limits.RECEIVED_BYTES and not self._has_room(now):
                return  # it is asked for again when there is room
            if stream.on_train(now, train):
                self._after_data(now, stream)
                return
            self._held -= len(datagram) + limits.DATAGRAM_COST_BYTES
        for frame in split(datagram, size):
            self.receive(now, frame, source)

    def _on_data(self, now: float, header: DataHeader, datagram: bytes, source: Address) -> None:
        # Hot, as all that follows from here: header fields by position.
        _, _, _, count, tag, _, id, *_ = header
        stream = self.streams.get(id)
        if stream is not None and tag == self._tag:
            if stream.address != source:
                self._on_others_data(now, stream, header, datagram, source)
                return
            self._held += len(datagram) + limits.DATAGRAM_COST_BYTES
            if count and self._held > limits.RECEIVED_BYTES and not self._has_room(now):
                return  # it is asked for again when there is room
            stream.on_data(now, header, datagram)
            self._after_data(now, stream)

    def _on_others_data(self, now: float, stream: Stream, header: DataHeader, datagram: bytes, source: Address) -> None:
        """Not the sender says that it said so. Believed of a receiver that was asked, of what is missing, and of
        nothing beside it."""
        if source not in stream.asked or self._held > limits.RECEIVED_BYTES:
            self.stats.refused += 1
            return
        self._held += len(datagram) + limits.DATAGRAM_COST_BYTES
        stream.on_others_data(now, header, datagram)
        self._after_data(now, stream)

    def _after_data(self, now: float, stream: Stream) -> None:
        if stream.report_at <= now:
            stream.send_report(now)
        if stream.next_deadline() < self._deadline:
            self._at_latest(stream.next_deadline())

    def _on_control_datagram(self, now: float, datagram: bytes, source: Address) -> None:
        self._on_control(now, decode_control(datagram), source)

    def _on_control(self, now: float, frame: Control, source: Address) -> None:
        check_counters(frame, self.wall.read(now))
        match frame:
            case SenderAlive() if frame.label == self.label:
                self._on_sender_alive(now, frame, source)
            case Alive() if frame.label == self.label and frame.source != self.id:
                if frame.recorder:
                    self._on_recorder(now, frame, source)
                if frame.group == self.group:
                    self._on_alive(now, frame, source)
            case Stamp() if frame.source in self.streams:
                self._on_stamp(now, self.streams[frame.source], frame, source)
            case Progress() if self._is_from(frame.source, source):
                self.streams[frame.source].on_progress(now, frame)
                self._at_latest(self.streams[frame.source].next_deadline())
            case TableFrame() if (frame.label, frame.group) == (self.label, self.group):
                self._on_table(now, frame, source)
            case SenderGoodbye() if self._is_from(frame.source, source):
                self._end_stream(frame.source, goodbye=True)
            case Goodbye() if frame.label == self.label:
                self.recorders.forget(frame.source, source)
                self._tell_recorders(len(self.recorders) > 0)
                if frame.group == self.group and self.membership.goodbye(now, frame.source, source):
                    self._at_latest(self.membership.next_deadline())
            case Order() if (frame.label, frame.group) == (self.label, self.group) and frame.to in (0, self.id):
                self._on_order(now, frame, source)
            case AskTable() if frame.group == self.group and self.membership.table is not None:
                self._say_in_answer(now, source, self._table_frame(self.membership.table))
            case Nak() if frame.stream in self.streams and self.membership.is_from(frame.source, source):
                self._answer(now, self.streams[frame.stream], frame, source)
            case AskStamps() if frame.stream in self.streams and self.membership.is_from(frame.source, source):
                for stamp in self.streams[frame.stream].log.between(frame.first, frame.last):
                    self._say_in_answer(now, source, stamp)

    def _is_from(self, sender: int, source: Address) -> bool:
        """Is it a sender that I follow, and speaks it from there?"""
        stream = self.streams.get(sender)
        return stream is not None and stream.address == source

    def _say_in_answer(self, now: float, source: Address, frame: Control) -> None:
        """As much as one may ask for."""
        datagram = encode_control(frame, self._tag)
        if self._doors.may_send(now, source, len(datagram)):
            self._out.append((source, datagram))

    def _on_stamp(self, now: float, stream: Stream, stamp: Stamp, source: Address) -> None:
        """From the sender; or, while it is silent, from a receiver that was asked."""
        for entry in stamp.groups:
            if entry.group == self.group:
                self.membership.learn_counter(entry.version.counter)
        stream.on_stamp(now, stamp, self._stamp_slots() - stream.log.slots)
        self._at_latest(stream.next_deadline())

    def _stamp_slots(self) -> int:
        """In the open stamps of all streams."""
        return sum(stream.log.slots for stream in self.streams.values())

    def _on_sender_alive(self, now: float, frame: SenderAlive, source: Address) -> None:
        stream = self.streams.get(frame.source)
        if stream is None:
            if self._ended_streams.get(frame.source) or not self._may_follow(now, source):
                return
            stream = self._follow(now, frame.source, source)
            self._beat_soon(now, spread=True)
        elif frame.hello:
            self._beat_soon(now, spread=True)
        for state in frame.groups:
            if state.group == self.group:
                self.membership.learn_counter(state.version.counter)
        stream.on_alive(now, frame)
        self._at_latest(stream.next_deadline())

    def _may_follow(self, now: float, source: Address) -> bool:
        """Is there room, and nobody else who speaks from there?"""
        if len(self.streams) >= limits.STREAMS_MAX:
            return False
        other = self.streams.get(self._streams_at.get(source, 0))
        return other is None or now - other.heard_at > self._timings.expiry

    def _follow(self, now: float, id: int, address: Address) -> Stream:
        self._streams_at[address] = id
        stream = self.streams[id] = Stream(
            id,
            label=self.label,
            group=self.group,
            me=self.id,
            address=address,
            timings=self._timings,
            random=self._random,
            stats=self.stats,
            beats=self._beats,
            send=self._say,
            tell=self.events.append,
            settler=self._settler,
            wall=self.wall,
            tracked=self._tracked,
            work_kind=self.work_kind,
            was_forgotten=id in self._ended_streams,
            now=now,
        )
        if self.leaving:
            stream.leave(now)
        if self.recorders:
            self._tell_recorders(True)
        self._share_window()
        return stream

    def _end_stream(self, id: int, *, goodbye: bool) -> None:
        stream = self.streams.pop(id, None)
        if stream is not None:
            stream.end()
            if self._streams_at.get(stream.address) == id:
                del self._streams_at[stream.address]
            self._ended_streams[id] = goodbye
            while len(self._ended_streams) > limits.REMEMBERED_MAX:
                del self._ended_streams[next(iter(self._ended_streams))]
            self._share_window()

    def _on_alive(self, now: float, frame: Alive, source: Address) -> None:
        if not self.membership.hear(now, frame, source):
            return
        if frame.version != NO_VERSION:
            self._know_pause()
        if self.orders.hear(frame.pause):
            self._change_pause(now, f"(word of {frame.source:016x})")
        # The keeper's answer is enough: if all answered, a hundred joiners would make ten thousand heartbeats.
        if frame.hello and self.membership.is_keeper:
            self._beat_soon(now)
        if self.membership.lags(now, frame.source) and self.membership.table is not None:
            self._say(source, self._table_frame(self.membership.table))
        for heard in frame.heard:
            stream = self.streams.get(heard.stream)
            if stream is not None and heard.silent:
                stream.consider_orphaned(now, self.membership.peers)
        self._at_latest(self.membership.next_write())

    # --- orders ---------------------------------------------------------------------------------------------------

    def _on_order(self, now: float, order: Order, source: Address) -> None:
        """Carried out once, and answered each time that it comes."""
        outcome = self.orders.answered(order)
        if outcome is None:
            outcome = self._carry_out(now, order)
            self.orders.remember(order, outcome)
        self._say(source, OrderDone(self.id, order.nonce, outcome))

    def _carry_out(self, now: float, order: Order) -> OrderOutcome:
        if order.what in (OrderKind.PAUSE, OrderKind.RESUME):
            self._know_pause()
            outcome = self.orders.set_pause(order)
            if outcome is OrderOutcome.CARRIED_OUT:
                self._change_pause(now, f"by {order.by!r}")
            return outcome
        if order.what == OrderKind.DRAIN:
            if self.leaving:
                return OrderOutcome.WAS_SO
            self.events.append(f"told to leave by {order.by!r}")
            self.leave(now)
            return OrderOutcome.CARRIED_OUT
        if order.value == self.membership.weight:
            return OrderOutcome.WAS_SO
        if self.leaving or not self.membership.weigh(now, order.value):
            return OrderOutcome.REFUSED
        self.events.append(f"given weight {order.value} by {order.by!r}")
        self._beat_soon(now)
        return OrderOutcome.CARRIED_OUT

    def _know_pause(self) -> None:
        """One who is in a table has told whether the group is paused; or there is nobody who could."""
        self.orders.asked = True
        self._rests = self.orders.rests

    def _change_pause(self, now: float, how: str) -> None:
        self._rests = self.orders.rests
        what = "paused" if self.paused else "resumed"
        self.events.append(f"{what} {how}, order of {self.orders.pause.setter:016x}")
        self._beat_soon(now)

    # --- recorders ------------------------------------------------------------------------------------------------

    def _on_recorder(self, now: float, frame: Alive, source: Address) -> None:
        """Somebody keeps a journal: from now on it is told what is done here."""
        self.recorders.hear(now, frame.source, source)
        self._tell_recorders(True)

    def _tell_recorders(self, tell: bool) -> None:
        """Are they told? If not any more, then at least what was noted until now."""
        for stream in self.streams.values():
            if (stream.work.outcomes is not None) != tell:
                stream.tell_recorders(partial(self._say_handled, stream.id) if tell else None)

    def _say_handled(self, stream: int, runs: tuple[HandledRun, ...]) -> None:
        self._told += 1
        handled = encode_control(Handled(self.id, self.label, self.group, stream, self._told, runs), self._tag)
        self._out += [(address, handled) for address in self.recorders.addresses]

    def _on_table(self, now: float, frame: TableFrame, source: Address) -> None:
        if self.membership.is_elsewhere(frame.source, source):
            self.stats.refused += 1
            return
        if self.membership.offer(now, Table(frame.version, frame.members, frame.draining, frame.shard_map)):
            self._beat_soon(now)
        self._at_latest(self.membership.next_write())

    def _answer(self, now: float, stream: Stream, nak: Nak, source: Address) -> None:
        """Another receiver lacks frames of a stream whose sender is silent."""
        budget = limits.REPAIR_BYTES_MAX // 4
        for datagram in stream.holding.answer(nak):
            budget -= len(datagram)
            if budget < 0 or not self._doors.may_send(now, source, len(datagram)):
                return
            self._out.append((source, datagram))

    # --- memory ---------------------------------------------------------------------------------------------------

    def _has_room(self, now: float) -> bool:
        """Memory seems full. Copies of what others own go first: they are only for inheriting, and can be asked for."""
        if now >= self._make_room_at:
            self._make_room_at = now + MAKE_ROOM_S
            self._drop_copies()
            self._share_window()
        return self._held <= limits.RECEIVED_BYTES

    def _drop_copies(self) -> None:
        for stream in self.streams.values():
            stream.drop_copies()

    def _share_window(self) -> None:
        """What was asked for as socket buffer, of which Linux grants twice as much, is shared by all streams."""
        count = max(1, len(self.streams))
        self._held = sum(stream.cost for stream in self.streams.values())
        room = max(0, limits.RECEIVED_BYTES - self._held)
        for stream in self.streams.values():
            stream.intake.window = min(self._receive_bytes, room) // count
            stream.shared_by = count

    # --- time -----------------------------------------------------------------------------------------------------

    def wake(self, now: float) -> None:
        """Whatever is due."""
        if self.left:
            return
        self._notice_nap(now)
        if self._held > limits.RECEIVED_BYTES // 2:
            self._drop_copies()
        self._share_window()
        table = self.membership.wake(now)
        if table is not None:
            self._say(Route.CONTROL, self._table_frame(table))
            self.events.append(f"wrote table {table.version.counter} with {len(table.members)} members")
            self._beat_at = now
        if self._rests and self.membership.table is not None and now >= self._asks_until:
            self._know_pause()
        peers = self.membership.peers
        for stream in list(self.streams.values()):
            newly_silent = stream.newly_silent(now)
            stream.wake(now, peers)
            if newly_silent:
                self._beat_at = now
            if stream.forgotten(now):
                self._end_stream(stream.id, goodbye=False)
        if now >= self._beat_at:
            self._beat(now)
        if self.leaving:
            self._leave_if_done(now)
        if not self.left:
            self._wake_at(self._find_deadline())

    def _find_deadline(self) -> float:
        streams = min((stream.next_deadline() for stream in self.streams.values()), default=math.inf)
        silence = min((stream.silent_at for stream in self.streams.values()), default=math.inf)
        return min(self._beat_at, self.membership.next_deadline(), streams, silence)

    def _notice_nap(self, now: float) -> None:
        nap = self._naps.slept(now)
        if nap:
            self.membership.forgive(nap)
            self.recorders.forgive(nap)
            for stream in self.streams.values():
                stream.heard_at += nap

    def _beat_soon(self, now: float, *, spread: bool = False) -> None:
        """At once; or, where all receivers answer the same, spread over a time that grows with their number."""
        wait = self._random.random() * SPREAD_S * len(self.membership.peers) if spread else 0.0
        self._beat_at = min(self._beat_at, max(now + wait, self._beaten_at + PROMPT_S))
        self._at_latest(self._beat_at)

    def _beat(self, now: float) -> None:
        """I am alive."""
        first = self._beats.counter == 0
        if self.recorders:
            self.recorders.expire(now)
            self._tell_recorders(len(self.recorders) > 0)
        if self._hands_over and not self._rests and now >= self._beaten_at + self._timings.heartbeat / 2:
            for stream in self.streams.values():
                stream.consider_handing_over(now, self.membership.peers)
        self._beaten_at = now
        self._beat_at = now + self._timings.heartbeat
        self._know_whom_i_work_with(now)
        streams = self.streams.values()
        self._say(
            Route.CONTROL,
            Alive(
                self.id,
                self.label,
                self.group,
                self.membership.weight,
                self._beats.beat(now),
                hello=first,
                leaving=self.leaving,
                load=self._load(now),
                version=self.membership.version,
                heard=tuple(stream.heard(now) for stream in streams),
                reports=tuple(stream.report(full=True) for stream in streams),
                recorder=self.is_recorder,
                pause=self.orders.pause,
            ),
        )
        for stream in streams:
            stream.reported(now)
        self._introduce(now)

    def _know_whom_i_work_with(self, now: float) -> None:
        """Those in my table, the senders that count on me, and recorders: strangers must not take their place."""
        table, peers = self.membership.table, self.membership.peers
        members = table.everyone if table is not None else ()
        senders = [stream.address for stream in self.streams.values() if stream.works_with_me]
        self._doors.know(
            now, [*(peers[id].address for id in members if id in peers), *senders, *self.recorders.addresses]
        )

    def _introduce(self, now: float) -> None:
        """Who I am, to those who look on."""
        membership = self.membership
        counters, ends = self.stats.counters(), len(membership.peers) + len(self.streams) + 1
        if not self._introducing.is_due(now, ends, counters, membership.version):
            return
        first, own, slots = slots_held(membership.table, self.id)
        self._say(
            Route.ABOUT,
            About(
                self.id,
                self.label,
                self.group,
                recorder=self.is_recorder,
                paused=self.paused,
                host=self._home.host,
                pid=self._home.pid,
                started_at=self._started_at,
                weight=membership.weight,
                version=membership.version,
                first_slot=first,
                own_slots=own,
                slots=slots,
                stamp=0,
                stamp_at=0,
                backlog=self._load(now),
                lag=self._lag,
                window_used=0,
                window=0,
                counters=counters,
            ),
        )
        self._lag = 0.0

    def _load(self, now: float) -> int:
        """Messages in hand and in line, about. Of a stream whose sender is gone nothing is in line."""
        return sum(stream.load(now) for stream in self.streams.values())

    def _table_frame(self, table: Table) -> TableFrame:
        return TableFrame(
            self.id, self.label, self.group, table.version, table.members, table.draining, table.shard_map
        )

    def check_invariants(self) -> None:
        self.membership.check_invariants()
        self.recorders.check_invariants()
        self.orders.check_invariants()
        assert self._rests == self.orders.rests
        assert self.recorders or all(stream.work.outcomes is None for stream in self.streams.values())
        self._beats.check_invariants()
        for stream in self.streams.values():
            stream.check_invariants()
        assert len(self.streams) <= limits.STREAMS_MAX
        assert len(self._ended_streams) <= limits.REMEMBERED_MAX
        assert all(self.streams[id].address == address for address, id in self._streams_at.items())
        assert self._stamp_slots() <= limits.STAMP_SLOTS_MAX + limits.STAMP_SLOTS_EACH * limits.STREAMS_MAX
        assert len(self._doors) <= limits.MEMBERS_MAX * 2 + limits.STREAMS_MAX + limits.RECORDERS_MAX
