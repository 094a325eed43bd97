"""The server of the page: composes place, keys, guard, files, feed and actions. Owns the paths and the lifetime."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from types import TracebackType
from typing import Any, Final, Protocol, Self

from aiohttp import web

from rvq import limits
from rvq.errors import WebError
from rvq.web import files
from rvq.web.actions import Admin, act
from rvq.web.doors import Doors
from rvq.web.feed import Feed
from rvq.web.guard import Guard, Handler
from rvq.web.keys import SIGNED_IN_S, Keys, need_token
from rvq.web.place import Place

_LOGIN: Final = "/login"
_BEFORE_LOGIN: Final = frozenset({_LOGIN, "/style.css", "/theme.js", "/icon.svg"})

_TOLD_S: Final = 1.0
"""At the end, how long answers on their way may take."""


class Source(Protocol):
    """Where pictures come from: an observer of the bus."""

    def snapshot(self) -> Mapping[str, Any]: ...
    def history(self) -> Mapping[str, Any]: ...


class Page:
    """Serves pictures of the bus as a page, from `async with` on. BadArgument if it would serve strangers."""

    def __init__(
        self,
        source: Source,
        place: Place | None = None,
        *,
        token: str | None = None,
        admin: Admin | None = None,
        sealed: bool = False,
        feed: Feed | None = None,
        make_doors: Callable[[web.Server], Doors] = Doors,
    ) -> None:
        self.place = Place() if place is None else place
        if token is None and not self.place.is_loopback:
            raise need_token(f"serving the page on {self.place.host}, where others can reach it,")
        if token is None and admin is not None and sealed:
            raise need_token("--admin on a sealed bus, where only who has the key may act,")
        self._source = source
        self._keys = Keys(token)
        self._guard = Guard(self.place, self._keys, _BEFORE_LOGIN)
        self._admin = admin
        self._files = files.load()
        self.feed = Feed(source.snapshot) if feed is None else feed
        self._make_doors = make_doors
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._running: asyncio.Task[None] | None = None
        self.doors: Doors | None = None

    async def __aenter__(self) -> Self:
        self._runner = web.AppRunner(self._make_app(), access_log=None, shutdown_timeout=_TOLD_S, handle_signals=False)
        await self._runner.setup()
        assert self._runner.server is not None
        self.doors = self._make_doors(self._runner.server)
        try:
            self._server = await asyncio.get_running_loop().create_server(
                self.doors, self.place.host, self.place.port, backlog=limits.WEB_CONNECTIONS_MAX
            )
        except OSError as error:
            await self._runner.cleanup()
            raise WebError(
                f"the page cannot be served at {self.place.url} ({error.strerror or error}): give another port or"
                " address with --web"
            ) from error
        self.place = self.place.at(self._server.sockets[0].getsockname()[1])
        self._guard.serve_at(self.place)
        self._running = asyncio.create_task(self.feed.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def wait(self) -> None:
        """Until it is closed. What went wrong with a picture is raised here."""
        assert self._running is not None
        await asyncio.shield(self._running)

    async def aclose(self) -> None:
        """Lets everyone go. Twice is fine."""
        await self.feed.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    def _make_app(self) -> web.Application:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            assert self.doors is not None
            self.doors.note(request)
            return await self._guard(request, handler)

        app = web.Application(middlewares=[guarded], client_max_size=limits.WEB_BODY_BYTES_MAX)
        app.on_response_prepare.append(self._guard.prepare)
        for name, file in self._files.items():
            if name not in ("index.html", "login.html"):
                app.router.add_get(f"/{name}", file.answer)
        app.router.add_get("/", self._index)
        app.router.add_get("/about", self._about)
        app.router.add_get("/picture", self._picture)
        app.router.add_get("/history", self._history)
        app.router.add_get("/pictures", self.feed.watch)
        if self._keys.required:
            app.router.add_get(_LOGIN, self._ask)
            app.router.add_post(_LOGIN, self._sign_in)
        if self._admin is not None:
            app.router.add_post("/act", self._act)
        return app

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return await self._files["index.html"].answer(request)

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        return await self._files["login.html"].answer(request)

    async def _about(self, request: web.Request) -> web.StreamResponse:
        """What a page must know before it shows anything."""
        about = {"version": version("rvq"), "admin": self._admin is not None, "mark": self._keys.mark}
        return web.json_response(about)

    async def _picture(self, request: web.Request) -> web.StreamResponse:
        """One, for scripts."""
        return web.json_response(self._source.snapshot())

    async def _history(self, request: web.Request) -> web.StreamResponse:
        """What charts need of the time before."""
        return web.json_response(self._source.history())

    async def _sign_in(self, request: web.Request) -> web.StreamResponse:
        self._guard.check_own(request)
        given = (await request.post()).get("token", "")
        if not isinstance(given, str) or not self._keys.is_token(given.strip()):
            raise web.HTTPSeeOther(f"{_LOGIN}#wrong")
        answer = web.HTTPSeeOther("/")
        cookie = self._keys.make_cookie(time.time())
        answer.set_cookie(self._guard.cookie, cookie, max_age=SIGNED_IN_S, httponly=True, samesite="Strict", path="/")
        raise answer

    async def _act(self, request: web.Request) -> web.StreamResponse:
        assert self._admin is not None
        self._guard.check_own(request)
        self._guard.check_mark(request)
        return await act(self._admin, request)
