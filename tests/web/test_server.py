"""The server of the page as a whole."""

from __future__ import annotations

import asyncio
import json

import pytest

from rvq.errors import BadArgument, WebError
from rvq.web.place import Place
from rvq.web.server import Page
from tests.web.pictures import MadeUp, busy
from tests.web.serving import HERE, TOKEN, FakeAdmin, visiting


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_on_another_address_it_refuses_to_serve_without_a_token(host: str) -> None:
    with pytest.raises(BadArgument, match=r"needs a token: .*--token-file"):
        Page(MadeUp(), Place(host))
    Page(MadeUp(), Place(host), token=TOKEN)


def test_acting_on_a_sealed_bus_needs_a_token_even_on_loopback() -> None:
    with pytest.raises(BadArgument, match=r"--admin on a sealed bus.* needs a token"):
        Page(MadeUp(), HERE, admin=FakeAdmin(), sealed=True)
    Page(MadeUp(), HERE, admin=FakeAdmin(), sealed=True, token=TOKEN)
    Page(MadeUp(), HERE, sealed=True)


async def test_on_another_address_it_serves_those_who_have_the_token() -> None:
    async with visiting(Page(busy(), Place("0.0.0.0", 0), token=TOKEN)) as visitor:
        assert (await visitor.get("/picture")).status == 401
        assert (await visitor.get("/picture", headers={"Authorization": f"Bearer {TOKEN}"})).status == 200


async def test_a_port_that_is_taken_is_said_in_one_sentence() -> None:
    async with Page(MadeUp(), HERE) as page:
        with pytest.raises(WebError, match=rf"cannot be served at {page.place.url} \(.*in use\): give another port"):
            async with Page(MadeUp(), page.place):
                pass


async def test_a_page_says_what_it_is_and_what_it_may() -> None:
    for admin in (None, FakeAdmin()):
        async with visiting(Page(MadeUp(), HERE, admin=admin)) as visitor:
            about = await (await visitor.get("/about")).json()
            assert about.keys() == {"version", "admin", "mark"} and about["admin"] == (admin is not None)


async def test_one_picture_and_the_time_before_are_there_for_scripts() -> None:
    source = busy(lambda: 1_700_000_000.0)
    async with visiting(Page(source, HERE)) as visitor:
        assert await (await visitor.get("/picture")).json() == json.loads(json.dumps(source.snapshot()))
        assert await (await visitor.get("/history")).json() == json.loads(json.dumps(source.history()))


async def test_leaving_does_not_wait_for_those_who_watch() -> None:
    page = Page(MadeUp(), HERE)
    async with visiting(page) as visitor:
        await visitor.get("/pictures")
        async with asyncio.timeout(30):
            await page.aclose()
            await page.aclose()


async def test_closing_ends_the_wait() -> None:
    page = Page(MadeUp(), HERE)
    async with page:
        waiting = asyncio.ensure_future(page.wait())
        await asyncio.sleep(0)
        await page.aclose()
        await asyncio.wait({waiting}, timeout=30)
        assert waiting.done()
