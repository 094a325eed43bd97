"""Leave when it has been quiet for long enough. Owns one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Quiet:
    """Calls when `idle` seconds have passed since `begin`, unless `end` came first. Without `idle`: never."""

    def __init__(self, idle: float | None, call: Callable[[], None]) -> None:
        self._idle = idle
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Nothing is in hand."""
        self.end()
        if self._idle is not None:
            self._timer = asyncio.get_running_loop().call_later(self._idle, self._call)

    def end(self) -> None:
        """Something came, or it is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
