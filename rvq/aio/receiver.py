"""`rvq.Receiver`: messages out, each to its one owner. Owns handing out and acknowledging, not the protocol."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from random import Random
from threading import get_ident
from types import TracebackType
from typing import Literal

from rvq.aio.dead import DeadLetters
from rvq.aio.driver import Driver, Signal, level_of, logger, monotonic
from rvq.aio.fanout import on_bus, open_endpoint
from rvq.aio.home import here
from rvq.aio.missed import CatchingUp
from rvq.aio.sealing import keys_of
from rvq.bus import Bus, check_bus
from rvq.core.receiver import ReceiverMachine
from rvq.core.receiving import ReceivingMachine
from rvq.core.stats import Stats
from rvq.core.table import TableView
from rvq.core.tap import TapMachine
from rvq.core.work import Handed
from rvq.dead import ERROR_CHARACTERS_MAX, TRACE_CHARACTERS_MAX, DeadLetter, sendable
from rvq.errors import BadArgument, BusError, Closed, LedgerError
from rvq.journal import JournalReader
from rvq.ledger.ledger import Ledger, Mark, Transaction
from rvq.message import Lost, Message
from rvq.names import check_group, check_label
from rvq.timings import Timings
from rvq.wire.frames import ID_BITS

AHEAD = 64
"""Messages that `async for` takes at once. Each is checked again when it is handed out."""

Ack = Literal["auto", "manual"]


class Receiver:
    """Receives the messages of a label that are its own to handle, as one of a group.

    group: receivers of one group share the work; each group gets every message. None is a tap: it sees every message
        from when it is opened, owns nothing, and nobody knows of it. What it had to pass over is in `stats.lost`.
    weight: its share of the work relative to others, 1 to 64.
    ack: "auto": a message is done when the next one is asked for; "manual": when `ack()` is called.
    on_table: called with the table whenever it changes.
    ledger: where `message.transaction()` writes; it is opened and closed by whoever made it.
    tracked: tell every start to the sender, so that a message that ends its process counts as tried. Costs a datagram
        for each time that messages are taken.
    hand_over: give what waits here for long, half of it each time, to a receiver of the group that has nothing to do.
        Messages with keys stay. Nothing is sent again: it is one small frame.
    from_journal: the folder of a journal: the group also gets what was recorded before it came, or while nobody of it
        was there; with what it gets live each message once. Give it to all of the group: one of them sees to it.
    """

    def __init__(
        self,
        label: str,
        *,
        group: str | None = "default",
        weight: int = 1,
        ack: Ack = "auto",
        bus: Bus | None = None,
        on_table: Callable[[TableView], None] | None = None,
        ledger: Ledger | None = None,
        tracked: bool = False,
        hand_over: bool = False,
        from_journal: str | Path | None = None,
    ) -> None:
        if ack not in ("auto", "manual"):
            raise BadArgument(f'ack={ack!r} is not a way to acknowledge: give "auto" or "manual"')
        if not isinstance(hand_over, bool):
            raise BadArgument(f"hand_over={hand_over!r:.60} is neither True nor False: give one of them")
        if on_table is not None and not callable(on_table):
            raise BadArgument(f"on_table={on_table!r:.60} cannot be called: give a function of the table")
        self.label = check_label(label)
        if group is None:
            _check_tap(weight, ledger, tracked, from_journal)
        self.group = None if group is None else check_group(group)
        self._weight = weight
        self.ack_mode: Ack = ack
        self.bus = check_bus(bus)
        self.id = secrets.randbits(ID_BITS) or 1
        self.ledger = ledger
        self.dead_letters = DeadLetters(label, self.bus)
        self._tracked = tracked
        self._hand_over = hand_over
        self._from_journal = from_journal
        self._catching_up: CatchingUp | None = None
        self._ahead_max = 1 if tracked else AHEAD
        self._on_table = on_table
        self._shown: TableView | None = None
        self._changed = Signal()
        """Anything."""
        self._arrived = Signal()
        """There is something to take, or there will be no more."""
        self._ahead: deque[Message] = deque()
        self._finished: list[Message] = []
        """Done, and acknowledged with this turn's report."""
        self._hands: list[_Hand] = []
        self._only: _Hand | None = None
        """The hand of the only loop that has anything in hand, as of when it last asked for more."""
        self._own_loop: _Loop | None = None
        self._closed = False
        self.when_seen_lost: Callable[[Message], None] | None = None
        """Called when somebody looked at `message.lost` and it was set, in the thread of whoever looked."""
        self._event_loop: asyncio.AbstractEventLoop | None = None
        self._thread = get_ident()
        self._reporting = False
        self._driver: Driver | None = None
        self._machine: ReceivingMachine | None = None
        _ = self._make_machine(0.0, 0)  # its own checks, before anything is opened

    def _make_machine(self, now: float, receive_bytes: int) -> ReceivingMachine:
        timings: Timings = self.bus.timings
        if self.group is None:
            return TapMachine(
                self.label,
                self.id,
                timings=timings,
                random=Random(secrets.randbits(64)),
                now=now,
                wall_offset=time.time() - monotonic(),
                settler=_Settler(self),
            )
        return ReceiverMachine(
            self.label,
            self.id,
            group=self.group,
            weight=self._weight,
            timings=timings,
            random=Random(secrets.randbits(64)),
            now=now,
            wall_offset=time.time() - monotonic(),
            receive_bytes=receive_bytes,
            settler=_Settler(self),
            tracked=self._tracked,
            hand_over=self._hand_over,
            home=here(),
        )

    # --- lifetime -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Receiver:
        if self._machine is not None or self._closed:
            raise Closed(f"this receiver of {self.label!r} was opened before: make another")
        reader = None if self._from_journal is None else JournalReader(self._from_journal)  # its own checks
        keys = keys_of(self.bus)
        endpoint = open_endpoint(self.bus, self.label, data=True)
        self._machine = self._make_machine(monotonic(), endpoint.receive_buffer_bytes)
        self._driver = Driver(on_bus(self._machine, self.bus, keys, self.label, data=True), endpoint, self._on_change)
        self._event_loop, self._thread = asyncio.get_running_loop(), get_ident()
        if reader is not None and self.group is not None:
            self._catching_up = CatchingUp(reader, self.label, self.group, self.bus, self._arrived.fire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            for hand in self._hands:
                self._finish(hand)
        await self.aclose()

    def leave(self) -> None:
        """Begin to leave: no new messages, but the iterators go on with what is still ours, and then end."""
        if self._machine is not None and not self._closed:
            self._acknowledge()
            self._machine.leave(monotonic(), drain=True)
            self._step()

    async def aclose(self) -> None:
        """Leave now: what was not started is handed back at once. Twice is fine."""
        machine, driver = self._machine, self._driver
        if self._closed or machine is None or driver is None:
            self._closed = True
            return
        self._acknowledge()
        self._closed = True
        try:
            if self._catching_up is not None:
                await self._catching_up.aclose()
            machine.leave(monotonic(), drain=False)
            driver.step()
            async with asyncio.timeout(self.bus.expiry):
                while not machine.left:
                    await self._changed.wait()
        except TimeoutError:
            pass  # no sender confirmed what was done here: whoever inherits may repeat the last of it
        finally:
            machine.say_goodbye()
            driver.close()
            self._changed.fire()
            self._arrived.fire()
            await self.dead_letters.aclose()

    # --- receiving ------------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Message]:
        self._check_open()
        return _Loop(self)

    async def __anext__(self) -> Message:
        if self._own_loop is None or self._closed:
            self._check_open()
            self._own_loop = _Loop(self)
        return await anext(self._own_loop)

    async def batches(self, max: int = 500) -> AsyncIterator[list[Message]]:
        """Lists of up to `max` messages: the fast way. In auto mode a batch is done when the next one is asked for."""
        if isinstance(max, bool) or not isinstance(max, int) or max < 1:
            raise BadArgument(f"max={max!r} is not a number of messages: give 1 or more")
        self._check_open()
        hand = self._new_hand()
        while batch := await self._next_batch(hand, max):
            yield batch

    async def take(self, max: int) -> list[Message]:
        """Up to `max` messages as soon as there are any, for `ack="manual"`; none if there will be no more."""
        return await self._take(self._open_machine(), max)

    async def is_marked(self, message: Message) -> bool:
        """Was the effect of a message committed to the ledger before?"""
        return self.ledger is not None and await self.ledger.is_marked(mark_of(message))

    def is_lost(self, message: Message) -> bool:
        """Is it no longer ours to handle? As `message.lost`, but nobody is told that it was looked at."""
        machine = self._machine
        return self._closed or machine is None or not machine.may_continue(monotonic(), message)

    def is_anothers(self, message: Message) -> bool:
        """Has its sender given it to another, as far as is known here?"""
        return self._closed or self._machine is None or self._machine.is_anothers(message)

    def is_settled(self, message: Message) -> bool:
        """Was it acknowledged or rejected, or is it to be handed out again?"""
        return self._machine is None or self._machine.is_settled(message)

    async def _next_batch(self, hand: _Hand, most: int) -> list[Message]:
        """The next messages for one loop, as soon as there are any; none if there are no more."""
        machine = self._open_machine()
        self._settle_hands(hand)
        batch = self._take_ahead(machine, most)
        handed: list[Handed] = [*batch]
        if not batch:
            batch = await self._take(machine, most, handed)
        if self.ack_mode == "auto":
            hand.handed = handed
        return batch

    async def _next(self, hand: _Hand) -> Message | None:
        """The next message for one loop, as soon as there is one; None if there are no more."""
        machine = self._open_machine()
        self._settle_hands(hand)
        while (message := self._next_ahead(machine)) is None:
            found = await self._take(machine, self._ahead_max)
            if not found:
                return None
            self._ahead.extend(found)
        if self.ack_mode == "auto":
            hand.message = message
        return message

    def _take_ahead(self, machine: ReceivingMachine, max: int) -> list[Message]:
        """What `async for` took ahead and did not hand out."""
        batch: list[Message] = []
        while len(batch) < max and (message := self._next_ahead(machine)) is not None:
            batch.append(message)
        return batch

    def _next_ahead(self, machine: ReceivingMachine) -> Message | None:
        """The first of these that may still be handed out."""
        while self._ahead:
            message = self._ahead.popleft()
            if self._may_hand_out(machine, message):
                return message
        return None

    async def _take(self, machine: ReceivingMachine, max: int, handed: list[Handed] | None = None) -> list[Message]:
        """The next messages, as soon as there are any. None if there will be no more."""
        while not (machine.left or self._closed):
            if self._catching_up is not None:
                self._catching_up.check()
            if machine.ready:
                taken = machine.take(monotonic(), max, handed)
                if taken:
                    self._report_soon()
                    return taken
            if self._driver is not None and not self._reporting:  # else it leaves with the report, in this turn
                self._driver.send()
            await self._arrived.wait()
        return []

    def _give_back_ahead(self, machine: ReceivingMachine) -> None:
        """Something urgent came, and what was taken ahead of time stands behind it; or nothing is to be started."""
        now = monotonic()
        ahead, self._ahead = self._ahead, deque()
        for message in ahead:
            machine.give_back(now, message)

    def _may_hand_out(self, machine: ReceivingMachine, message: Message) -> bool:
        now = monotonic()
        if machine.may_continue(now, message):
            return True
        machine.give_back(now, message)
        return False

    def _open_machine(self) -> ReceivingMachine:
        if self._machine is None:
            raise Closed(f"this receiver of {self.label!r} is not open yet: use `async with rvq.Receiver(...)`")
        return self._machine

    def _check_open(self) -> None:
        """A new loop over a closed receiver is a mistake; one that was there before just ends."""
        self._open_machine()
        if self._closed:
            raise Closed(f"this receiver of {self.label!r} is closed: open another")
        if self._driver is not None:
            self._driver.check_loop(f"receiver of {self.label!r}")

    # --- acknowledging --------------------------------------------------------------------------------------------

    def _new_hand(self) -> _Hand:
        hand = _Hand(asyncio.current_task())
        self._hands.append(hand)
        self._only = None
        return hand

    def _settle_hands(self, hand: _Hand) -> None:
        """A loop asks for more: what it has in hand is done, and what an earlier loop of the same task had."""
        self._finish(hand)
        if self._hands != [hand]:
            for other in self._hands:
                if other.task is hand.task:
                    self._finish(other)
            self._hands = [hand, *(other for other in self._hands if other is not hand and not other.empty)]
        self._only = hand if len(self._hands) == 1 else None

    def _finish(self, hand: _Hand) -> None:
        if hand.message is not None:
            self._finished.append(hand.message)
            hand.message = None
            self._report_soon()
        if hand.handed and self._machine is not None:
            handed, hand.handed = hand.handed, []
            self._machine.acknowledge_handed(monotonic(), handed)
            self._report_soon()

    def _acknowledge(self) -> None:
        """Those that were handed out one by one: all of this turn of the loop at once."""
        if self._finished and self._machine is not None:
            finished, self._finished = self._finished, []
            self._machine.acknowledge_all(monotonic(), finished)

    def _report_soon(self) -> None:
        """What the machine says about progress leaves with the next turn of the loop."""
        if not self._reporting and not self._closed:
            self._reporting = True
            asyncio.get_running_loop().call_soon(self._report)

    def _call_in_loop(self, settle: Callable[[], None]) -> None:
        """A handler in a thread says what became of a message: the machine belongs to the thread of the loop."""
        if self._event_loop is not None and not self._event_loop.is_closed():
            self._event_loop.call_soon_threadsafe(settle)

    def _report(self) -> None:
        self._reporting = False
        if not self._closed:
            self._acknowledge()
            self._step()

    def _step(self) -> None:
        if self._driver is not None and not self._driver.closed:
            self._driver.step()

    def _on_change(self) -> None:
        machine = self._machine
        if machine is None:
            return
        self._changed.fire()
        if self._ahead and machine.paused:
            self._give_back_ahead(machine)
        if machine.ready or machine.left:
            if self._ahead and machine.has_urgent:
                self._give_back_ahead(machine)
            self._arrived.fire()
        if machine.events:
            for event in machine.events:
                level = level_of(event)
                logger.log(
                    level, "receiver %.4s… of %s (%s): %s", f"{self.id:016x}", self.label, self.group or "tap", event
                )
            machine.events.clear()
        if self._on_table is not None:
            table = machine.table
            if table is not None and table != self._shown:
                self._shown = table
                self._on_table(table)

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def table(self) -> TableView | None:
        """The table that this receiver belongs to; None before the first."""
        return self._machine.table if self._machine else None

    @property
    def weight(self) -> int:
        """Its share of the work relative to others, as it is now: `rvq weight` changes it."""
        machine = self._machine
        return machine.membership.weight if isinstance(machine, ReceiverMachine) else self._weight

    @property
    def paused(self) -> bool:
        """Does its group start nothing, because somebody said so (`rvq pause`)?"""
        return self._machine is not None and self._machine.paused

    @property
    def inheriting(self) -> bool:
        """Something that another receiver held will be ours when its lease must be over: more may come."""
        return self._machine is not None and self._machine.inheriting

    @property
    def leaving(self) -> bool:
        """It was told to leave: no new messages come."""
        return self._closed or (self._machine is not None and self._machine.leaving)

    @property
    def waiting_for(self) -> str | None:
        """Why it starts nothing, or what it has to finish before it can leave, in words. None if nothing is in its way,
        or if it has left."""
        return self._machine.waiting_for if self._machine and not self._closed else None

    @property
    def machine(self) -> ReceivingMachine | None:
        """For those who only look: `rvq.metrics`, from another thread. None before it is open."""
        return self._machine

    @property
    def stats(self) -> Stats:
        """Counts since the start."""
        self._acknowledge()
        return self._machine.stats if self._machine else Stats()

    def __repr__(self) -> str:
        place = "as a tap" if self.group is None else f"in {self.group!r}"
        return f"<Receiver {self.id:016x} of {self.label!r} {place}>"


class _Hand:
    """What one loop was given and has not asked past, in auto mode."""

    __slots__ = ("handed", "message", "task")

    def __init__(self, task: asyncio.Task[object] | None) -> None:
        self.handed: list[Handed] = []
        """The last batch."""
        self.message: Message | None = None
        """Or the last message."""
        self.task = task
        """Whose loop it is."""

    @property
    def empty(self) -> bool:
        return self.message is None and not self.handed

    def let_go(self, message: Message) -> None:
        """This one is settled in another way."""
        if self.message is message:
            self.message = None
        kept: list[Handed] = []
        for one in self.handed:
            if isinstance(one, Message):
                kept += [one] * (one is not message)
                continue
            piece, start, stop = one
            if piece is message.origin and start <= message.place < stop:
                cut: list[Handed] = [(piece, start, message.place), (piece, message.place + 1, stop)]
                kept += cut
            else:
                kept.append(one)
        self.handed = kept


class _Loop:
    """One `async for` over a receiver. Several tasks may each have their own."""

    __slots__ = ("_hand", "_receiver")

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._hand = receiver._new_hand()

    def __aiter__(self) -> _Loop:
        return self

    async def __anext__(self) -> Message:
        # Hot: what was taken ahead is handed out without another call, if a report of this turn is due anyway and no
        # other loop has anything in hand.
        receiver, hand = self._receiver, self._hand
        ahead, before = receiver._ahead, hand.message
        if ahead and before is not None and receiver._only is hand and receiver._reporting:
            message = ahead[0]
            if message.origin.may_continue(monotonic()):
                receiver._finished.append(before)
                hand.message = message
                ahead.popleft()
                return message
        following = await receiver._next(hand)
        if following is None:
            raise StopAsyncIteration
        return following


class _Settler:
    """Takes the outcome of this receiver's messages."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def ack(self, message: Message) -> None:
        receiver = self._receiver
        if get_ident() != receiver._thread:
            receiver._call_in_loop(message.ack)
        elif receiver._machine is not None:
            receiver._machine.acknowledge(monotonic(), message)
            receiver._report_soon()

    def retry(self, message: Message, delay: float) -> None:
        receiver = self._receiver
        if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not 0 <= delay < float("inf"):
            raise BadArgument(f"delay={delay!r} is not a duration: give seconds, 0 or more")
        if get_ident() != receiver._thread:
            receiver._call_in_loop(partial(message.retry, delay))
        elif receiver._machine is not None:
            self._let_go(message)
            receiver._machine.retry(monotonic(), message, delay)
            receiver._report_soon()

    def reject(self, message: Message, reason: str, trace: str, attempts: int) -> None:
        receiver, machine = self._receiver, self._receiver._machine
        if not isinstance(reason, str):
            raise BadArgument(f"reason={reason!r:.60} is {type(reason).__name__}, not str: say in words why")
        if get_ident() != receiver._thread:
            receiver._call_in_loop(partial(message.bury, reason, trace=trace, attempts=attempts))
        elif machine is not None and not receiver._closed:  # what is rejected after the end is handled elsewhere
            self._let_go(message)
            first_owner = machine.first_owner(message)
            attempts = attempts or message.attempt
            if machine.reject(monotonic(), message, reason):
                receiver.dead_letters.bury(_letter(message, reason, trace, attempts, first_owner, receiver.id))
            receiver._report_soon()

    def transaction(self, message: Message) -> Transaction:
        ledger = self._receiver.ledger
        if ledger is None:
            raise LedgerError("there is no ledger here: rvq.consume(…, ledger=rvq.Ledger.sqlite('file.db'))")
        return ledger.transaction(mark_of(message))

    def _let_go(self, message: Message) -> None:
        """In auto mode too a message can be retried or rejected: then asking for the next one does not settle it."""
        for hand in self._receiver._hands:
            hand.let_go(message)

    def lost(self, message: Message) -> Lost:
        return _LostFlag(self._receiver, message)


def mark_of(message: Message) -> Mark:
    """Its name in a ledger."""
    return Mark(message.label, _group_of(message), message.sender, message.sequence)


def _group_of(message: Message) -> str:
    assert message.group is not None, "nothing of a tap is marked or buried"
    return message.group


def _check_tap(weight: int, ledger: Ledger | None, tracked: bool, from_journal: str | Path | None) -> None:
    if weight != 1:
        raise BusError(f"group=None is a tap, which owns nothing and has no share: leave weight={weight!r} out")
    if ledger is not None or tracked:
        raise BusError("group=None is a tap, which owns nothing and handles nothing: give a group to handle messages")
    if from_journal is not None:
        raise BusError("group=None is a tap, which missed nothing that it owns: give a group, or read the journal")


def _letter(message: Message, error: str, trace: str, attempts: int, first_owner: int, me: int) -> DeadLetter:
    return DeadLetter(
        id=message.id,
        label=message.label,
        group=_group_of(message),
        body=message.body,
        key=message.key,
        headers=message.headers,
        error=sendable(error)[:ERROR_CHARACTERS_MAX],
        traceback=sendable(trace)[-TRACE_CHARACTERS_MAX:],
        attempts=attempts,
        sent_at=message.sent_at,
        died_at=time.time(),
        first_owner=f"{first_owner:016x}",
        last_owner=f"{me:016x}",
    )


class _LostFlag:
    """Set once a message is no longer its receiver's to handle."""

    def __init__(self, receiver: Receiver, message: Message) -> None:
        self._receiver = receiver
        self._message = message

    def is_set(self) -> bool:
        is_lost = self._receiver.is_lost(self._message)
        if is_lost and self._receiver.when_seen_lost is not None:
            self._receiver.when_seen_lost(self._message)
        return is_lost

    async def wait(self) -> bool:
        while not self.is_set():
            await self._receiver._changed.wait()
        return True
