"""Pictures of the bus to all who watch, as server-sent events. Owns the pace, the bound on watchers, and the slow.

A watcher has no queue: whoever is behind gets the newest picture next, and whoever takes nothing for a while is
dropped. So a picture is made and packed once however many watch, and none is made while nobody does.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from aiohttp import web

from rvq import limits

EVERY_S: Final = 0.5
"""A join is seen well within two seconds, and a phone keeps up."""

SLOW_S: Final = 10.0
"""Who takes nothing for so long is gone, or might as well be."""

_SEND_BUFFER: Final = 64 * limits.KIB
"""What the kernel keeps for one watcher: else it would be megabytes before we notice that nobody reads."""


class Feed:
    """Takes a picture now and then while somebody watches, and gives it to all."""

    def __init__(
        self,
        take: Callable[[], Mapping[str, Any]],
        *,
        every_s: float = EVERY_S,
        slow_s: float = SLOW_S,
        watchers_max: int = limits.WEB_WATCHERS_MAX,
    ) -> None:
        self._take = take
        self._every_s = every_s
        self._slow_s = slow_s
        self._watchers_max = watchers_max
        self._newest = b""
        self._number = 0
        self._changed = asyncio.Condition()
        self._closed = False
        self.watchers = 0
        self.dropped = 0
        """Watchers that were too slow."""

    async def run(self) -> None:
        """Until closed. What goes wrong with a picture is raised here, and ends every watching."""
        try:
            while not self._closed:
                async with self._changed:
                    await self._changed.wait_for(lambda: self.watchers or self._closed)
                    self._newest = pack(self._take())
                    self._number += 1
                    self._changed.notify_all()
                await asyncio.sleep(self._every_s)
        finally:
            await self.close()

    async def watch(self, request: web.Request) -> web.StreamResponse:
        """Answers with pictures until one of the two sides ends it."""
        if self.watchers >= self._watchers_max or self._closed:
            raise web.HTTPServiceUnavailable(
                text=f"{self.watchers} watch already, which is all that this page serves", headers={"Retry-After": "10"}
            )
        self.watchers += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            _bound(request.transport)
            await response.prepare(request)
            with suppress(ConnectionError):
                await self._tell(request, response)
            return response
        finally:
            self.watchers -= 1

    async def _tell(self, request: web.Request, response: web.StreamResponse) -> None:
        told = self._number
        while await self._is_newer(told):
            told = self._number
            try:
                async with asyncio.timeout(self._slow_s):
                    await response.write(self._newest)
            except TimeoutError:
                self.dropped += 1
                if request.transport is not None:
                    request.transport.abort()
                return

    async def _is_newer(self, told: int) -> bool:
        """When there is a picture after this one; False if there will be none."""
        async with self._changed:
            self._changed.notify_all()  # the first watcher wakes `run`
            await self._changed.wait_for(lambda: self._number > told or self._closed)
        return not self._closed

    async def close(self) -> None:
        """Lets every watcher go."""
        self._closed = True
        async with self._changed:
            self._changed.notify_all()


def pack(picture: Mapping[str, Any]) -> bytes:
    """One event. JSON in ASCII has no line breaks, so it is one line."""
    return b"data: " + json.dumps(picture, separators=(",", ":"), allow_nan=False).encode() + b"\n\n"


def _bound(transport: asyncio.BaseTransport | None) -> None:
    connection = transport.get_extra_info("socket") if transport is not None else None
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
