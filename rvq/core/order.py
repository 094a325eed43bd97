"""One key at a time. Owns which keys of one stream are being handled, and what waits behind them, in order.

After a switch a key may have another receiver: a message waits until its shard's messages of older segments are done,
which the stream's sender tells. Messages with a due time are not in that order; they are only never at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from rvq.message import Message

Key = str | bytes


class Gate(NamedTuple):
    """What a message waits for: that everything of its shard from before its segment is done."""

    stamp: int
    at: int
    """The first sequence of the segment."""
    shard: int


class KeyOrder:
    """The keys of one stream at one receiver."""

    __slots__ = ("_current", "_held", "_waiting")

    def __init__(self) -> None:
        self._current: dict[Key, Message] = {}
        self._waiting: dict[Key, deque[Message]] = {}
        self._held: dict[Gate, list[Message]] = {}

    def admit(self, message: Message, gate: Gate, is_open: Callable[[Gate], bool]) -> bool:
        """May it start? If not it is kept: until its gate is open, and until its key is free."""
        key = message.key
        assert key is not None
        if message.due_at is None and not is_open(gate):
            self._held.setdefault(gate, []).append(message)
            return False
        current = self._current.get(key)
        overtaken = current is not None and current.due_at is None and current.sequence < gate.at
        if current is not None and not (overtaken and message.due_at is None):
            self._waiting.setdefault(key, deque()).append(message)
            return False
        self._current[key] = message
        return True

    def finished(self, message: Message) -> Message | None:
        """A message was handled. The next one of its key, which may start now."""
        key = message.key
        assert key is not None
        if self._current.get(key) is not message:
            return None
        waiting = self._waiting.get(key)
        if not waiting:
            del self._current[key]
            return None
        following = waiting.popleft()
        if not waiting:
            del self._waiting[key]
        self._current[key] = following
        return following

    def released(self, is_open: Callable[[Gate], bool]) -> list[Message]:
        """What was held for older segments and is to be admitted again."""
        if not self._held:
            return []
        due = sorted(gate for gate in self._held if is_open(gate))
        return [message for gate in due for message in self._held.pop(gate)]

    def overtaken(self, done_to: int) -> list[Message]:
        """Keys whose current message another receiver has done meanwhile are free: what may start now instead."""
        stale = [key for key, message in self._current.items() if message.sequence <= done_to]
        return [following for key in stale if (following := self._overtake(key, done_to)) is not None]

    def _overtake(self, key: Key, done_to: int) -> Message | None:
        """Everything of a key up to here is done: the first one after that is its current one."""
        waiting = self._waiting.pop(key, deque())
        while waiting and waiting[0].sequence <= done_to and waiting[0].due_at is None:
            waiting.popleft()
        if not waiting:
            del self._current[key]
            return None
        following = self._current[key] = waiting.popleft()
        if waiting:
            self._waiting[key] = waiting
        return following

    def check_invariants(self) -> None:
        for key, waiting in self._waiting.items():
            assert waiting and key in self._current
            sequences = [message.sequence for message in waiting if message.due_at is None]
            assert sequences == sorted(sequences), "a key out of order"
