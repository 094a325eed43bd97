"""Lines from a file descriptor, many at a time and each as soon as it is there. Owns reading; knows no messages.

Reads are large and handed on as they come: a full file comes in blocks of many lines, a slow pipe line by line. Memory
is bounded by a few blocks and the longest line.
"""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

from rvq.errors import MessageTooLarge
from rvq.limits import KIB, MESSAGE_BYTES_MAX

BLOCK_BYTES = 256 * KIB
"""One read. Some ten thousand lines: larger ones are not faster, and the bar would jump."""

BLOCKS_AHEAD = 4
"""Blocks that a thread may read ahead of the loop."""


class LineCutter:
    """Cuts blocks at line ends. What follows the last one waits for the next block."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, block: bytes) -> bytes | None:
        """All whole lines up to here, with newlines between them but none at the end; None if no line is whole yet."""
        end = block.rfind(b"\n")
        if end < 0:
            self._keep(block)
            return None
        lines = b"".join((*self._parts, block[:end]))
        self._parts, self._size = [], 0
        self._keep(block[end + 1 :])
        return lines

    def rest(self) -> bytes | None:
        """A last line without a newline."""
        return b"".join(self._parts) if self._parts else None

    def _keep(self, part: bytes) -> None:
        if part:
            self._parts.append(part)
            self._size += len(part)
        if self._size > MESSAGE_BYTES_MAX:
            raise MessageTooLarge(self._size, MESSAGE_BYTES_MAX)


async def chunks(fd: int) -> AsyncIterator[bytes]:
    """Runs of whole lines, until the end of the input."""
    cutter = LineCutter()
    async for block in blocks(fd):
        lines = cutter.feed(block)
        if lines is not None:
            yield lines
    rest = cutter.rest()
    if rest is not None:
        yield rest


async def blocks(fd: int) -> AsyncIterator[bytes]:
    """What is read, as it comes. The loop never waits for it, except for a disk."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        while block := os.read(fd, BLOCK_BYTES):
            yield block
        return
    reader = _Reader(fd)
    try:
        while block := await reader.next():
            yield block
    finally:
        reader.close()


class _Reader:
    """A thread that reads what may block: pipes, terminals, devices.

    A daemon, and no pool's: it may be stuck in a read when the command ends, and nobody can get it out of there.
    Setting the descriptor non-blocking instead would do so for everyone who shares it, the user's shell included.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[bytes | OSError] = asyncio.Queue(BLOCKS_AHEAD)
        self._room = threading.Semaphore(BLOCKS_AHEAD)
        self._closed = False
        threading.Thread(target=self._read, name="rvq-read", daemon=True).start()

    async def next(self) -> bytes:
        block = await self._arrived.get()
        self._room.release()
        if isinstance(block, OSError):
            raise block
        return block

    def close(self) -> None:
        self._closed = True
        self._room.release()

    def _read(self) -> None:
        block: bytes | OSError = b"-"
        while block and not isinstance(block, OSError):
            self._room.acquire()
            if self._closed:
                return
            try:
                block = os.read(self._fd, BLOCK_BYTES)
            except OSError as error:
                block = error
            with suppress(RuntimeError):  # the loop is closed: the command is ending
                self._loop.call_soon_threadsafe(self._arrived.put_nowait, block)
