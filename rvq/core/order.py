"""One key at a time. Owns which keys of one stream are being handled, and what waits behind them, in order.

A message with a key also waits while older segments of its stream are not done: then the key's former receiver may
still be at an older one.
"""

from __future__ import annotations

from collections import deque

from rvq.message import Message

Key = str | bytes


class KeyOrder:
    """The keys of one stream at one receiver."""

    __slots__ = ("_current", "_held", "_waiting")

    def __init__(self) -> None:
        self._current: dict[Key, Message] = {}
        self._waiting: dict[Key, deque[Message]] = {}
        self._held: dict[int, list[Message]] = {}

    def admit(self, message: Message, after: int, done_to: int) -> bool:
        """May it start? If not it is kept: until everything up to `after` is done, and until its key is free."""
        if after > done_to:
            self._held.setdefault(after, []).append(message)
            return False
        key = message.key
        assert key is not None
        if key in self._current:
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

    def released(self, done_to: int) -> list[Message]:
        """What was held for older segments and is to be admitted again."""
        due = sorted(after for after in self._held if after <= done_to)
        return [message for after in due for message in self._held.pop(after) if message.sequence > done_to]

    def overtaken(self, done_to: int) -> list[Message]:
        """Keys whose current message another receiver has done meanwhile are free: what may start now instead."""
        following = []
        for key in [key for key, message in self._current.items() if message.sequence <= done_to]:
            waiting = self._waiting.pop(key, deque())
            while waiting and waiting[0].sequence <= done_to:
                waiting.popleft()
            if waiting:
                self._current[key] = waiting.popleft()
                following.append(self._current[key])
            else:
                del self._current[key]
            if waiting:
                self._waiting[key] = waiting
        return following

    def check_invariants(self) -> None:
        for key, waiting in self._waiting.items():
            assert waiting and key in self._current
            sequences = [message.sequence for message in waiting]
            assert sequences == sorted(sequences), "a key out of order"
