"""How many connections there may be, and how long one may say nothing."""

from __future__ import annotations

import asyncio

from rvq.web.doors import Doors
from rvq.web.server import Page
from tests.web.pictures import MadeUp
from tests.web.serving import HERE


async def connect(page: Page) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(page.place.host, page.place.port)


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What comes until the other side ends it."""
    async with asyncio.timeout(30):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def test_one_connection_too_many_is_closed_at_once_and_a_later_one_is_served() -> None:
    async with Page(MadeUp(), HERE, make_doors=lambda server: Doors(server, connections_max=3)) as page:
        inside = [await connect(page) for _ in range(3)]
        for _, writer in inside:
            writer.write(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for reader, _ in inside:
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        reader, writer = await connect(page)
        assert await ended(reader) == b""
        writer.close()
        assert page.doors is not None and page.doors.refused == 1
        for _, writer in inside:
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(30):
            answer = b""
            while not answer.startswith(b"HTTP/1.1 200"):  # until it has noticed that they are gone
                reader, writer = await connect(page)
                writer.write(b"GET /about HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = await ended(reader)
                writer.close()


async def test_a_connection_that_asks_for_nothing_is_closed() -> None:
    async with Page(MadeUp(), HERE, make_doors=lambda server: Doors(server, mute_s=0.05)) as page:
        silent, slow = await connect(page), await connect(page)
        slow[1].write(b"GET /about HT")  # and never the rest
        assert await ended(silent[0]) == b"" == await ended(slow[0])
        assert page.doors is not None and page.doors.mute == 2
        silent[1].close()
        slow[1].close()


async def test_a_connection_that_asked_may_stay() -> None:
    async with Page(MadeUp(), HERE, make_doors=lambda server: Doors(server, mute_s=0.05)) as page:
        reader, writer = await connect(page)
        mute, mute_writer = await connect(page)
        writer.write(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"}")
        assert await ended(mute) == b""
        writer.write(b"GET /about HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        mute_writer.close()
