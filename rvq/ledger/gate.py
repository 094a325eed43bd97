"""A number of places, taken in the order of asking, by tasks and by threads alike. Owns who is inside and who waits.

A database would let us wait as well, but SQLite wakes nobody (it polls, and the unlucky starve), and PostgreSQL would
have a connection for each who waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from concurrent.futures import Future
from typing import NamedTuple

from rvq.errors import LedgerError

Who = object
"""A task, or the number of a thread outside of any event loop."""


class _Waiter(NamedTuple):
    who: Who
    turn: Future[None]


class Gate:
    """Closed at first. Waiting has no limit of its own: a place is free when the handler that has it ends."""

    def __init__(self, places: int) -> None:
        self._places = places
        self._lock = threading.Lock()
        self._is_open = False
        self._inside: set[Who] = set()
        self._waiting: deque[_Waiter] = deque()
        self._emptied: list[Future[None]] = []

    def open(self) -> None:
        """From now on one may enter."""
        with self._lock:
            self._is_open = True

    async def close(self) -> None:
        """Turns away who waits and who comes, and returns when all have left."""
        emptied = self._close(who_am_i())
        if emptied is not None:
            await asyncio.wrap_future(emptied)

    async def enter(self) -> Who:
        """Waits for a place. What is returned is handed to `leave`."""
        who = who_am_i()
        turn = self._ask(who)
        try:
            await asyncio.wrap_future(turn)
        except asyncio.CancelledError:
            self._withdraw(who)
            raise
        return who

    def enter_blocking(self) -> Who:
        """The same, for a thread."""
        who = who_am_i()
        turn = self._ask(who)
        try:
            turn.result()
        except BaseException:
            self._withdraw(who)
            raise
        return who

    def leave(self, who: Who) -> None:
        """Frees a place, for the one who has waited longest."""
        with self._lock:
            self._leave(who)

    def _ask(self, who: Who) -> Future[None]:
        with self._lock:
            if not self._is_open:
                raise closed()
            if who in self._inside:
                raise LedgerError(
                    "this task or thread is inside a transaction of this ledger: end that block before another"
                )
            turn = _started()
            if len(self._inside) < self._places:
                self._inside.add(who)
                turn.set_result(None)
            else:
                self._waiting.append(_Waiter(who, turn))
            return turn

    def _withdraw(self, who: Who) -> None:
        with self._lock:
            if who in self._inside:  # the turn came, and so did a cancellation
                self._leave(who)
            else:
                self._waiting = deque(waiter for waiter in self._waiting if waiter.who != who)

    def _leave(self, who: Who) -> None:
        self._inside.remove(who)
        if self._waiting:
            following, turn = self._waiting.popleft()
            self._inside.add(following)
            turn.set_result(None)
        elif not self._inside:
            while self._emptied:
                self._emptied.pop().set_result(None)

    def _close(self, who: Who) -> Future[None] | None:
        with self._lock:
            self._is_open = False
            while self._waiting:
                self._waiting.popleft().turn.set_exception(closed())
            if who in self._inside:
                raise LedgerError("a ledger cannot be closed inside a transaction of its own: leave the block first")
            if not self._inside:
                return None
            self._emptied.append(_started())
            return self._emptied[-1]


def closed() -> LedgerError:
    """For who uses a ledger before it is opened or after it is closed."""
    return LedgerError("the ledger is not open: enter `async with ledger:`, or await ledger.open(), first")


def in_event_loop() -> bool:
    """Whether an event loop runs in this thread: then nothing here may block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def who_am_i() -> Who:
    """The task, or the thread where there is no task."""
    return (asyncio.current_task() if in_event_loop() else None) or threading.get_ident()


def _started() -> Future[None]:
    """A future that only its owner can end: a cancelled waiter must not cancel it while it is being handed a place."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future
