"""A page that is served for a test, and what a browser would send to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from typing import Any

import aiohttp

from rvq.web.place import Place
from rvq.web.server import Page

TOKEN = "a token of many characters"
HERE = Place(port=0)
ACTING = {"Content-Type": "application/json"}


class FakeAdmin:
    """Remembers what it was asked for. Refuses with `error` if there is one."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    async def drain(self, id: str, label: str) -> str:
        return self._do("drain", id, label)

    async def weight(self, id: str, label: str, weight: int) -> str:
        return self._do("weight", id, label, weight)

    async def pause(self, label: str, group: str) -> str:
        return self._do("pause", label, group)

    async def resume(self, label: str, group: str) -> str:
        return self._do("resume", label, group)

    def _do(self, *asked: Any) -> str:
        self.asked.append(asked)
        if self.error is not None:
            raise self.error
        return "done: " + " ".join(map(str, asked))


class Visitor:
    """Asks a page; what was answered is open until the visitor leaves."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._answers: list[aiohttp.ClientResponse] = []

    async def get(self, path: str, **options: Any) -> aiohttp.ClientResponse:
        return self._keep(await self._session.get(path, **options))

    async def post(self, path: str, **options: Any) -> aiohttp.ClientResponse:
        return self._keep(await self._session.post(path, **options))

    def _keep(self, answer: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
        self._answers.append(answer)
        return answer

    def leave(self) -> None:
        for answer in self._answers:
            answer.close()


@asynccontextmanager
async def visiting(page: Page, **options: Any) -> AsyncIterator[Visitor]:
    """A visitor of a page that is served meanwhile."""
    jar = aiohttp.CookieJar(unsafe=True)  # which means: also for addresses without a name
    async with page, aiohttp.ClientSession(page.place.url, cookie_jar=jar, **options) as session:
        visitor = Visitor(session)
        try:
            yield visitor
        finally:
            visitor.leave()


def own_origin(page: Page) -> dict[str, str]:
    """What a browser says of itself when our own page posts something."""
    return {"Origin": page.place.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}


@contextmanager
def served(source: Any, **options: Any) -> Iterator[Served]:
    """A page in a thread of its own, for browsers, whose driver blocks."""
    one = Served(source, options)
    one.start()
    try:
        yield one
    finally:
        one.stop()


class Served:
    """Can be stopped and started again at the same port."""

    def __init__(self, source: Any, options: dict[str, Any]) -> None:
        self._source = source  # of pictures; or a context that opens one, on the loop of the page
        self._options = options
        self._place = HERE
        self._ready = threading.Event()
        self._failed: BaseException | None = None
        self._stop = lambda: None

    @property
    def url(self) -> str:
        return self._place.url

    def start(self) -> None:
        self._ready.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        self._stop()
        self._thread.join(30)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._failed = error
            self._ready.set()

    async def _serve(self) -> None:
        loop, over = asyncio.get_running_loop(), asyncio.Event()
        opened = self._source if hasattr(self._source, "__aenter__") else nullcontext(self._source)
        async with opened as source, Page(source, self._place, **self._options) as page:
            self._place = page.place
            self._stop = lambda: None if loop.is_closed() else loop.call_soon_threadsafe(over.set)  # type: ignore[func-returns-value,assignment]
            self._ready.set()
            await over.wait()
