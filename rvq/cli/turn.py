"""One at a time on this host: who comes second waits until the first is gone, however it went. Owns the place in line.

The place is a Unix socket without a file: the kernel frees it when its process ends, and hosts that share no network
share no place either.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from hashlib import blake2b

AGAIN_S = 0.02
"""Before another look, when the one before is just coming or going."""


@asynccontextmanager
async def turn(name: str, on_wait: Callable[[], None]) -> AsyncIterator[None]:
    """It is ours alone inside the block. `on_wait` is called when somebody else has it."""
    address = "\0rvq " + blake2b(name.encode(), digest_size=16).hexdigest()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as place:
        while not _take(place, address):
            on_wait()
            await _until_gone(address)
        place.listen()
        yield


def _take(place: socket.socket, address: str) -> bool:
    try:
        place.bind(address)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


async def _until_gone(address: str) -> None:
    """Nobody ever writes: the connection ends with the one who has the place."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line, suppress(OSError):
        line.setblocking(False)
        line.connect(address)
        await loop.sock_recv(line, 1)
        return
    await asyncio.sleep(AGAIN_S)
