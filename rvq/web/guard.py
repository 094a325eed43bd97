"""What every request passes, and what every answer carries. Owns the refusals; knows nothing of what is served behind.

Three strangers are kept out: one on the network without the token; a page of another origin in the visitor's own
browser, which could send requests but must not read or act; and a name that leads a browser to this address.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from rvq.web.keys import Keys
from rvq.web.place import Place

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MARK_HEADER: Final = "X-RVQ-Mark"

HEADERS: Final = {
    # Only our own files; and no text becomes markup or code, whoever wrote it.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script';"
        " trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer" browsers would hide the origin of our own forms from us.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "rvq",
}


class Guard:
    """Asked before every handler."""

    def __init__(self, place: Place, keys: Keys, public: Collection[str]) -> None:
        self._place = place
        self._keys = keys
        self._public = public
        """Paths that are there for those who are not signed in yet."""
        self.cookie = "rvq"
        """Its name. Has the port in it once there is one, since a browser keeps cookies by host alone."""

    def serve_at(self, place: Place) -> None:
        self._place = place
        self.cookie = f"rvq-{place.port}"

    async def prepare(self, request: web.Request, response: web.StreamResponse) -> None:
        """The headers of every answer."""
        response.headers.update(HEADERS)
        if hdrs.CACHE_CONTROL not in response.headers:
            response.headers[hdrs.CACHE_CONTROL] = "no-store"

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The handler's answer, if this visitor may have it."""
        self.check_meant(request)
        if request.path not in self._public and not self.is_known(request):
            if wants_page(request):
                raise web.HTTPSeeOther("/login")
            raise web.HTTPUnauthorized(
                text="sign in at /login, or send the token as Authorization: Bearer",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return await handler(request)

    def check_meant(self, request: web.Request) -> None:
        """It is for us, and of a page of ours if a page sent it."""
        if not self._place.is_meant(request.host):
            raise web.HTTPMisdirectedRequest(text="this page answers to localhost and its own address only")
        site = request.headers.get("Sec-Fetch-Site", "none")
        is_visit = request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
        if site not in ("same-origin", "none") and not is_visit:
            raise web.HTTPForbidden(text="asked by a page of another origin")

    def is_known(self, request: web.Request) -> bool:
        """Has shown the token, or there is none to show."""
        if not self._keys.required:
            return True
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() == "bearer":
            return self._keys.is_token(given.strip())
        return self._keys.is_cookie(request.cookies.get(self.cookie, ""), time.time())

    def check_own(self, request: web.Request) -> None:
        """Sent by our own page: browsers say the origin of whatever is posted."""
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None or urlsplit(origin).netloc.lower() != request.host.lower():
            raise web.HTTPForbidden(text="asked by a page of another origin")

    def check_mark(self, request: web.Request) -> None:
        """Sent by a script that could read our page."""
        if not self._keys.is_mark(request.headers.get(MARK_HEADER, "")):
            raise web.HTTPForbidden(text="the mark of the page is missing or old: load the page again")


def wants_page(request: web.Request) -> bool:
    """A person who opens an address, not a script or an image."""
    return request.method == "GET" and "text/html" in request.headers.get(hdrs.ACCEPT, "")
