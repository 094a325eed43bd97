"""What the page may do to the bus. Owns the reading of what is posted; what is done, and whether, is the admin's.

There only if the page was started with --admin.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

from aiohttp import web

from rvq import limits
from rvq.errors import RvqError


class Admin(Protocol):
    """Who carries out actions. Each says what came of it, and raises RvqError with the reason if nothing did."""

    async def drain(self, id: str, label: str) -> str: ...
    async def weight(self, id: str, label: str, weight: int) -> str: ...
    async def pause(self, label: str, group: str) -> str: ...
    async def resume(self, label: str, group: str) -> str: ...


async def act(admin: Admin, request: web.Request) -> web.Response:
    """One action, such as `{"do": "drain", "id": …, "label": …}`. Answers with what came of it, or why nothing did."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="post JSON")
    try:
        asked = json.loads(await request.text())
    except (ValueError, RecursionError):
        return _refusal(400, "not an action: post JSON")
    try:
        done = await _carry_out(admin, asked)
    except _Unclear as error:
        return _refusal(400, f"not an action: {error}")
    except RvqError as error:
        return _refusal(409, str(error))
    return web.json_response({"done": done})


def _refusal(status: int, why: str) -> web.Response:
    return web.json_response({"error": why}, status=status)


class _Unclear(Exception):
    """What was posted is none of the four."""


async def _carry_out(admin: Admin, asked: Any) -> str:
    match asked:
        case {"do": "drain", "id": str(id), "label": str(label)}:
            return await admin.drain(_id(id), label)
        case {"do": "weight", "id": str(id), "label": str(label), "weight": int(weight)} if not isinstance(
            weight, bool
        ):
            if not 1 <= weight <= limits.WEIGHT_MAX:
                raise _Unclear(f"weight {weight} is not from 1 to {limits.WEIGHT_MAX}")
            return await admin.weight(_id(id), label, weight)
        case {"do": "pause", "label": str(label), "group": str(group)}:
            return await admin.pause(label, group)
        case {"do": "resume", "label": str(label), "group": str(group)}:
            return await admin.resume(label, group)
    raise _Unclear("say do, and id, weight, label or group as it needs them")


def _id(text: str) -> str:
    if len(text) != 16 or not all(digit in "0123456789abcdef" for digit in text):
        raise _Unclear("an id has 16 hex digits")
    return text
