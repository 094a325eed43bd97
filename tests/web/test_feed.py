"""Pictures to all who watch; the slow are dropped."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

from rvq.web.feed import Feed, pack
from rvq.web.server import Page
from tests.web.pictures import MadeUp
from tests.web.serving import HERE, visiting

SOON = 0.01


class Counting(MadeUp):
    """Counts how often it is asked; each picture can be made large."""

    def __init__(self, weight: int = 0) -> None:
        super().__init__()
        self.taken = 0
        self.weight = weight

    def snapshot(self) -> dict[str, Any]:
        self.taken += 1
        return {"number": self.taken, "ballast": "x" * self.weight}


async def until(is_so: Any) -> None:
    async with asyncio.timeout(30):
        while not is_so():
            await asyncio.sleep(0.005)


async def read_picture(response: Any) -> dict[str, Any]:
    async with asyncio.timeout(30):
        line = await response.content.readline()
        assert await response.content.readline() == b"\n"
    assert line.startswith(b"data: ")
    picture: dict[str, Any] = json.loads(line[6:])
    return picture


async def test_a_watcher_is_sent_one_picture_after_the_other() -> None:
    source = Counting()
    async with visiting(Page(source, HERE, feed=Feed(source.snapshot, every_s=SOON))) as visitor:
        response = await visitor.get("/pictures")
        assert response.headers["Content-Type"] == "text/event-stream"
        assert [(await read_picture(response))["number"] for _ in range(3)] == [1, 2, 3]
        response.close()


async def test_no_picture_is_taken_while_nobody_watches() -> None:
    source = Counting()
    page = Page(source, HERE, feed=Feed(source.snapshot, every_s=SOON))
    async with visiting(page) as visitor:
        await asyncio.sleep(10 * SOON)
        assert source.taken == 0
        response = await visitor.get("/pictures")
        await read_picture(response)
        response.close()
        await until(lambda: page.feed.watchers == 0)
        taken = source.taken
        await asyncio.sleep(10 * SOON)
        assert source.taken <= taken + 1


async def test_a_picture_is_made_once_however_many_watch() -> None:
    source = Counting()
    page = Page(source, HERE, feed=Feed(source.snapshot, every_s=0.2))
    async with visiting(page) as visitor:
        responses = [await visitor.get("/pictures") for _ in range(5)]
        pictures = [await read_picture(response) for response in responses]
        assert source.taken <= max(picture["number"] for picture in pictures) + 1 <= 4
        for response in responses:
            response.close()


async def test_one_watcher_too_many_is_told_so_and_may_come_later() -> None:
    source = Counting()
    page = Page(source, HERE, feed=Feed(source.snapshot, every_s=SOON, watchers_max=2))
    async with visiting(page) as visitor:
        first, second = [await visitor.get("/pictures") for _ in range(2)]
        refused = await visitor.get("/pictures")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
        assert "2 watch already" in await refused.text()
        first.close()
        await until(lambda: page.feed.watchers == 1)
        assert (await visitor.get("/pictures")).status == 200
        second.close()


async def test_a_watcher_that_reads_nothing_is_dropped_and_others_go_on() -> None:
    source = Counting(weight=200_000)
    page = Page(source, HERE, feed=Feed(source.snapshot, every_s=SOON, slow_s=0.3))
    async with visiting(page, read_bufsize=2**20) as visitor:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect((page.place.host, page.place.port))
            slow.sendall(b"GET /pictures HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await until(lambda: page.feed.watchers == 1)
            quick = await visitor.get("/pictures")
            while not page.feed.dropped:
                assert (await read_picture(quick))["number"]
            assert page.feed.watchers == 1, "the quick one"
            quick.close()


async def test_everyone_is_let_go_when_the_page_is_closed() -> None:
    source = Counting()
    page = Page(source, HERE)
    async with visiting(page) as visitor:
        response = await visitor.get("/pictures")
        await read_picture(response)
        await page.aclose()
        assert await response.content.read() == b""
        assert page.feed.watchers == 0


async def test_a_source_that_fails_ends_the_page_with_its_error() -> None:
    def fails() -> dict[str, Any]:
        raise ZeroDivisionError

    page = Page(MadeUp(), HERE, feed=Feed(fails))
    async with visiting(page) as visitor:
        await visitor.get("/pictures")
        with pytest.raises(ZeroDivisionError):
            async with asyncio.timeout(30):
                await page.wait()


def test_a_picture_is_one_line_whatever_is_in_it() -> None:
    packed = pack({"label": "a\n\ndata: b\r\u2028", "at": 1.5})
    assert packed.count(b"\n") == 2 and packed.endswith(b"\n\n") and b"\r" not in packed
    assert json.loads(packed[6:]) == {"label": "a\n\ndata: b\r\u2028", "at": 1.5}
