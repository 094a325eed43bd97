"""How many connections there may be, and how long one may say nothing. Owns no socket and no request."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from rvq import limits

MUTE_S: Final = 10.0
"""A connection on which nothing was asked for so long is closed: aiohttp would wait for ever."""


class Doors:
    """Makes the protocol of each new connection, or of one too many, which is closed at once."""

    def __init__(
        self,
        server: web.Server,
        *,
        connections_max: int = limits.WEB_CONNECTIONS_MAX,
        mute_s: float = MUTE_S,
    ) -> None:
        self._server = server
        self._connections_max = connections_max
        self._mute_s = mute_s
        self._asked: set[asyncio.BaseProtocol] = set()
        """Of those that stand, and of those that ended since somebody came."""
        self.refused = 0
        self.mute = 0
        """Closed because they asked for nothing."""

    def __call__(self) -> asyncio.Protocol:
        inside = self._server.connections
        self._asked.intersection_update(inside)
        if len(inside) >= self._connections_max:
            self.refused += 1
            return _Closing()
        protocol = self._server()
        asyncio.get_running_loop().call_later(self._mute_s, self._see_off, protocol)
        return protocol

    def note(self, request: web.BaseRequest) -> None:
        """Something was asked."""
        self._asked.add(request.protocol)

    def _see_off(self, protocol: web.RequestHandler) -> None:
        if protocol.transport is not None and protocol not in self._asked:
            self.mute += 1
            protocol.transport.abort()


class _Closing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()
