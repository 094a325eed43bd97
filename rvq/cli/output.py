"""Standard output that may be slow. Owns writing to a descriptor without ever holding up the event loop.

A receiver that is stuck in a write sends no heartbeats and is taken for dead, so a full pipe is waited for. The
descriptor stays as it is: setting it non-blocking would do so for everyone who shares it.
"""

from __future__ import annotations

import asyncio
import os
import select
import stat
from collections.abc import Callable

PIECE_BYTES = select.PIPE_BUF
"""What a pipe that says it has room is sure to take at once."""


class Output:
    """Writes whole texts to a descriptor. BrokenPipeError if nobody reads it any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self._is_pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)

    async def write(self, data: bytes) -> None:
        """Returns when all of it is written."""
        left = memoryview(data)
        while left:
            if not self._poll.poll(0):
                await self._room()
            try:
                left = left[os.write(self._fd, left[:PIECE_BYTES]) :]
            except BlockingIOError:  # somebody has set it non-blocking
                await self._room()

    def when_closed(self, call: Callable[[], None]) -> None:
        """Calls once when the other end of a pipe is closed: `rvq-listen work | head` ends with head."""
        if not self._is_pipe:
            return
        loop = asyncio.get_running_loop()

        def look() -> None:
            loop.remove_reader(self._fd)
            if any(events & select.POLLERR for _, events in self._poll.poll(0)):
                call()

        loop.add_reader(self._fd, look)  # a pipe's writing end is never readable, but its errors are told

    async def _room(self) -> None:
        loop = asyncio.get_running_loop()
        has_room = asyncio.Event()
        loop.add_writer(self._fd, has_room.set)
        try:
            await has_room.wait()
        finally:
            loop.remove_writer(self._fd)
