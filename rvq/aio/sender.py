"""`rvq.Sender`: messages in, done when every group has handled them. Owns waiting; the protocol is `core.sender`'s."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Iterable, Iterator, Sized
from datetime import datetime
from itertools import islice
from random import Random
from types import TracebackType
from typing import Any

from rvq import limits
from rvq.aio.driver import Driver, Signal, level_of, logger, monotonic
from rvq.aio.fanout import on_bus, open_endpoint
from rvq.aio.home import here
from rvq.aio.sealing import frame_bytes, keys_of
from rvq.aio.times import due_time, time_to_live
from rvq.aio.tracing import Tracing, in_use
from rvq.bus import Bus, check_bus
from rvq.core.sender import SenderMachine
from rvq.core.stats import Stats
from rvq.core.table import TableView
from rvq.errors import BadArgument, BadMessage, Closed, NotDelivered, RvqError
from rvq.names import check_group, check_label
from rvq.wire.batch import RECORD_OVERHEAD
from rvq.wire.frames import ID_BITS
from rvq.wire.records import PACKED, RAW, Record, Records, make_record, make_records, pack

CHUNK_MIN, CHUNK_MAX, CHUNK_BYTES = 16, 2048, 256 * limits.KIB
"""Messages of `send_many` that are packed before the loop has its turn: about so many bytes of them."""

Rest = tuple[str | bytes | None, dict[str, Any] | None, float | None, float | None, bool]
"""What a message has beside its body: key, headers, due time, time to live, and whether it is urgent."""


class Sender:
    """Sends messages to a label: each is handled by one receiver of each group.

    linger: how long leaving the block waits for messages to be done; then NotDelivered says how many are not.
    window: bytes that are kept until they are done. When it is full, `send` waits.
    hold: seconds after which a group of which nobody is left is given up; for ever unless told.
    groups: send to these groups only; the others do not notice. To all groups unless told.
    """

    def __init__(
        self,
        label: str,
        *,
        bus: Bus | None = None,
        linger: float = 30.0,
        window: int = limits.RETAINED_BYTES,
        hold: float | None = None,
        groups: Iterable[str] | None = None,
    ) -> None:
        self.label = check_label(label)
        self._hold = float("inf") if hold is None else _check_seconds("hold", hold)
        self._groups = None if groups is None else _check_groups(groups)
        self.linger = _check_seconds("linger", linger)
        self.bus = check_bus(bus)
        self.id = secrets.randbits(ID_BITS) or 1
        self._window = _check_window(window)
        self._machine: SenderMachine | None = None
        self._driver: Driver | None = None
        self._changed = Signal()
        self._flushing = False
        self._said_why = False
        self._quick = 0
        """Bytes of messages that `send` may still gather in this turn of the loop without asking the machine."""
        self._gathered: list[bytes] = []
        self._gathered_kinds = bytearray()
        self._closed = False
        self._tracing: Tracing | None = None
        """Spans, if the program had OpenTelemetry when this was opened. Then nothing is gathered unlooked at."""

    # --- lifetime -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Sender:
        self.open()
        return self

    def open(self) -> None:
        """Begin to look for receivers. `async with` does it."""
        if self._machine is not None or self._closed:
            raise Closed(f"this sender of {self.label!r} was opened before: make another")
        keys = keys_of(self.bus)
        endpoint = open_endpoint(self.bus, self.label, data=False)
        self._tracing = in_use()
        self._machine = SenderMachine(
            self.label,
            self.id,
            timings=self.bus.timings,
            random=Random(secrets.randbits(64)),
            now=monotonic(),
            wall_offset=time.time() - monotonic(),
            frame_bytes=frame_bytes(self.bus, endpoint.frame_bytes),
            train_frames=endpoint.train_frames,
            window=self._window,
            hold=self._hold,
            groups=self._groups,
            home=here(),
        )
        self._driver = Driver(on_bus(self._machine, self.bus, keys, self.label, data=False), endpoint, self._on_change)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            await self.aclose()
        else:
            self.end()

    async def aclose(self) -> None:
        """Wait until everything is done, at most `linger` seconds, and say goodbye. NotDelivered if it was not."""
        if self._closed or self._machine is None:
            self._closed = True
            return
        try:
            await self.flush(self.linger)
            self._machine.close(monotonic())
        finally:
            self.end()

    def end(self) -> None:
        """Go now. What is not done is left to the receivers that have it. Twice is fine."""
        self._quick = 0
        # Without a goodbye, unless all is done: receivers then go on with what they have, as for any sender that died.
        self._closed = True
        if self._driver is not None:
            self._driver.close()
        self._changed.fire()

    # --- sending --------------------------------------------------------------------------------------------------

    async def send(
        self,
        body: Any,
        *,
        key: str | bytes | None = None,
        headers: dict[str, Any] | None = None,
        delay: float | None = None,
        due: datetime | None = None,
        ttl: float | None = None,
        urgent: bool = False,
    ) -> None:
        """Send one message: anything that msgpack takes, or bytes. Waits while the window is full.

        key: one receiver handles all messages of a key, in order.
        delay, due: not to be handled before so many seconds from now, or before this time (with a time zone).
        ttl: dropped if it was not handled so many seconds after it was sent.
        urgent: handled before those that wait at its receiver.
        """
        if delay is not None or due is not None or ttl is not None or urgent:
            return await self._send_one(body, key, headers, due_time(delay, due), time_to_live(ttl), urgent)
        if key is None and not headers and self._quick:
            # Hot: gathered with those before it in this turn of the loop.
            data, kind = (body, RAW) if type(body) is bytes else (pack(body), PACKED)
            left = self._quick - len(data) - RECORD_OVERHEAD
            if left > 0:
                self._quick = left
                self._gathered.append(data)
                self._gathered_kinds.append(kind)
                return
        if self._tracing is not None:
            return await self._send_one(body, key, headers)
        await self._send_slowly(make_record(body, key, headers))

    async def _send_one(self, body: Any, key: str | bytes | None, headers: dict[str, Any] | None, *rest: Any) -> None:
        """In a span, if one is recording."""
        if self._tracing is None or not self._tracing.is_recording:
            return await self._send_slowly(make_record(body, key, headers, *rest))
        with self._tracing.sending(self.label, headers) as sent:
            await self._send_slowly(make_record(body, key, sent, *rest))

    async def _send_slowly(self, record: Record) -> None:
        machine = self._open_machine()
        self._submit_gathered(machine)
        if not machine.has_room:
            await self._wait_for_room(machine)
        machine.submit_record(record)
        if machine.frame_is_full:
            self._flush_now(machine)
            await asyncio.sleep(0)
            self._flush_this_turn(machine)
        elif not self._flushing:
            # The first of this turn of the loop leaves at once; what is sent after it in the same turn goes together.
            self._flush_now(machine)
            self._flush_this_turn(machine)

    def _submit_gathered(self, machine: SenderMachine) -> None:
        """What `send` gathered comes before anything else."""
        self._quick = 0
        if self._gathered:
            machine.submit_records(Records.plain(self._gathered_kinds, self._gathered))
            self._gathered, self._gathered_kinds = [], bytearray()

    def submit(self, record: Record) -> bool:
        """Send what is packed already, without waiting. False if there is no room."""
        machine = self._open_machine()
        self._submit_gathered(machine)
        if not machine.has_room:
            return False
        machine.submit_record(record)
        self._flush_now(machine)
        return True

    async def send_many(
        self,
        bodies: Iterable[Any],
        *,
        key: str | bytes | None = None,
        headers: dict[str, Any] | None = None,
        delay: float | None = None,
        due: datetime | None = None,
        ttl: float | None = None,
        urgent: bool = False,
    ) -> None:
        """Send many messages: the fast way. Waits while the window is full. Those before a bad one are sent."""
        if self._tracing is not None and self._tracing.is_recording:
            count = len(bodies) if isinstance(bodies, Sized) else None
            with self._tracing.sending(self.label, headers, count) as headers:
                return await self._send_all(bodies, (key, headers, due_time(delay, due), time_to_live(ttl), urgent))
        await self._send_all(bodies, (key, headers, due_time(delay, due), time_to_live(ttl), urgent))

    async def _send_all(self, bodies: Iterable[Any], rest: Rest) -> None:
        if isinstance(bodies, (str, bytes, dict)) or not isinstance(bodies, Iterable):
            raise BadMessage(f"send_many takes a list or another iterable of messages, not {type(bodies).__name__}")
        try:
            await self._send_chunks(iter(bodies), rest)
        finally:
            if not self._closed and self._machine is not None:
                self._flush_now(self._machine)

    async def _send_chunks(self, bodies: Iterator[Any], rest: Rest) -> None:
        size = CHUNK_MIN
        while True:
            chunk: list[Any] = []
            try:
                chunk.extend(islice(bodies, size))
            except Exception:
                if chunk:  # what came before the iterable failed is sent
                    await self._send_chunks(iter(chunk), rest)
                raise
            if not chunk:
                return
            try:
                records = _pack(chunk, rest)
            except RvqError:
                for body in chunk:  # those before the bad one are sent
                    await self._send_slowly(make_record(body, *rest))
                raise
            mean = sum(records.lens) // len(chunk) + 1
            size = min(CHUNK_MAX, max(1, CHUNK_BYTES // mean))
            await self._send_chunk(records)

    async def _send_chunk(self, chunk: Records) -> None:
        machine = self._open_machine()
        if not machine.has_room:
            await self._wait_for_room(machine)
        self._submit_gathered(machine)
        machine.submit_records(chunk)
        self._flush_now(machine, whole=True)
        await asyncio.sleep(0)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until every message is done in every group. NotDelivered after `timeout` seconds."""
        machine = self._open_machine()
        self._check_loop()
        self._flush_now(machine)
        try:
            async with asyncio.timeout(timeout):
                while not machine.all_done:
                    await self._changed.wait()
                    self._open_machine()
        except TimeoutError:
            raise NotDelivered(machine.undone, machine.waiting_for or "") from None

    async def _wait_for_room(self, machine: SenderMachine) -> None:
        self._check_loop()
        while not machine.has_room:
            self._flush_now(machine)
            if not machine.has_room:
                self._say_why(machine)
                await self._changed.wait()
            self._open_machine()

    def _say_why(self, machine: SenderMachine) -> None:
        """Once, while nobody at all is there: who waits in `send` cannot look at `waiting_for`."""
        if machine.has_listeners:
            self._said_why = False
        elif not self._said_why:
            self._said_why = True
            why = machine.waiting_for
            logger.warning("sender %.4s… of %s: the window is full: %s", f"{self.id:016x}", self.label, why)

    def _open_machine(self) -> SenderMachine:
        if self._closed:
            raise Closed(f"this sender of {self.label!r} is closed: open another")
        if self._machine is None:
            raise Closed(f"this sender of {self.label!r} is not open yet: use `async with rvq.Sender(...)`")
        return self._machine

    def _check_loop(self) -> None:
        """Waiting in another loop than that of our socket would be for ever."""
        if self._driver is not None:
            self._driver.check_loop(f"sender of {self.label!r}")

    def _flush_this_turn(self, machine: SenderMachine) -> None:
        """What is sent from now on leaves together, when the loop has its next turn."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush_later)
        if not self._closed and self._tracing is None:
            self._quick = machine.room_in_frame

    def _flush_later(self) -> None:
        self._flushing = False
        self._quick = 0
        machine = self._machine
        if not self._closed and machine is not None and (self._gathered or machine.has_unsent):
            self._flush_now(machine)

    def _flush_now(self, machine: SenderMachine, *, whole: bool = False) -> None:
        self._submit_gathered(machine)
        machine.flush(monotonic(), whole=whole)
        if self._driver is not None:
            self._driver.send()

    def _on_change(self) -> None:
        machine = self._machine
        if machine is not None:
            self._changed.fire()
            if machine.events:
                for event in machine.events:
                    aloud = "holding messages" in event or "gave up" in event
                    level = logging.WARNING if aloud else level_of(event)
                    logger.log(level, "sender %.4s… of %s: %s", f"{self.id:016x}", self.label, event)
                machine.events.clear()

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def undone(self) -> int:
        """Messages that were sent and are not known to be done in every group."""
        return self._machine.undone + len(self._gathered) if self._machine else 0

    def is_done(self, number: int) -> bool:
        """Is the message that was sent as the `number`th, from 1, done in every group?"""
        return self._machine is not None and self._machine.is_done_by_all(number)

    @property
    def has_room(self) -> bool:
        """Does the window have room for more?"""
        return self._machine is None or self._machine.has_room

    @property
    def waiting_for(self) -> str | None:
        """Why nothing can be sent or done right now, in words; None if nothing is in the way."""
        return self._machine.waiting_for if self._machine else None

    @property
    def has_listeners(self) -> bool:
        """Is anybody there to send to, of any group?"""
        return self._machine is not None and self._machine.has_listeners

    @property
    def tables(self) -> dict[str, TableView]:
        """The table in force of each group."""
        return self._machine.tables if self._machine else {}

    @property
    def machine(self) -> SenderMachine | None:
        """For those who only look: `rvq.metrics`, from another thread. None before it is open."""
        return self._machine

    @property
    def stats(self) -> Stats:
        """Counts since the start."""
        if self._machine is None:
            return Stats()
        if not self._closed:
            self._submit_gathered(self._machine)
        return self._machine.stats

    def __repr__(self) -> str:
        return f"<Sender {self.id:016x} of {self.label!r}>"


def _pack(bodies: list[Any], rest: Rest) -> Records:
    key, headers, due_at, ttl, urgent = rest
    if key is None and not headers and due_at is None and ttl is None and not urgent:
        return make_records(bodies)
    return Records.of([make_record(body, *rest) for body in bodies])


def _check_seconds(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise BadArgument(f"{name}={value!r} is not a duration: give seconds, 0 or more")
    return float(value)


def _check_groups(groups: Iterable[str]) -> frozenset[str]:
    if not isinstance(groups, Iterable):
        raise BadArgument(f"groups={groups!r:.60} is no list of names: give some, or leave it out")
    found = frozenset(map(check_group, [groups] if isinstance(groups, str) else groups))
    if not found:
        raise BadArgument("groups is empty, so nobody would get anything: name some, or leave it out")
    return found


def _check_window(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < limits.FRAME_BYTES_MIN:
        raise BadArgument(f"window={value!r} is not a size: give bytes, at least {limits.FRAME_BYTES_MIN}")
    return value
