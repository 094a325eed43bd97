"""The page's own files, read once. Owns what is served, as what, and until when a browser may keep it.

Only what stands in static/ when the server starts has a path, so no path that a visitor makes up leads anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from importlib.resources import files
from typing import Final

from aiohttp import web

KINDS: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class File:
    """Bytes, their kind, and a name for exactly these bytes."""

    name: str
    body: bytes
    kind: str
    tag: str

    async def answer(self, request: web.Request) -> web.Response:
        """The bytes, or that the browser has them already. It asks each time, so a new release is seen at once."""
        headers = {"ETag": f'"{self.tag}"', "Cache-Control": "no-cache"}
        if any(tag.value == self.tag for tag in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        return web.Response(body=self.body, content_type=self.kind, charset="utf-8", headers=headers)


def load() -> dict[str, File]:
    """All of them, by name."""
    found = {}
    for path in files("rvq.web").joinpath("static").iterdir():
        dot = path.name.rfind(".")
        if (kind := KINDS.get(path.name[dot:])) is not None:
            body = path.read_bytes()
            found[path.name] = File(path.name, body, kind, blake2b(body, digest_size=8).hexdigest())
    return found
