"""What the page may do to the bus."""

from __future__ import annotations

from typing import Any

import pytest

from rvq.errors import BadArgument, BusError
from rvq.web.server import Page
from tests.web.pictures import MadeUp
from tests.web.serving import ACTING, HERE, FakeAdmin, own_origin, visiting

ID = "00000000000000ff"


async def act(admin: FakeAdmin | None, body: Any, **headers: str) -> tuple[int, Any]:
    page = Page(MadeUp(), HERE, admin=admin)
    async with visiting(page) as visitor:
        mark = (await (await visitor.get("/about")).json())["mark"]
        told = ACTING | own_origin(page) | {"X-RVQ-Mark": mark} | headers
        options = {"data": body} if isinstance(body, bytes) else {"json": body}
        answer = await visitor.post("/act", headers=told, **options)
        return answer.status, await (answer.json() if answer.content_type == "application/json" else answer.text())


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({"do": "drain", "id": ID, "label": "work"}, ("drain", ID, "work")),
        ({"do": "weight", "id": ID, "label": "work", "weight": 64}, ("weight", ID, "work", 64)),
        ({"do": "pause", "label": "<b>", "group": "g"}, ("pause", "<b>", "g")),
        ({"do": "resume", "label": "work", "group": "g"}, ("resume", "work", "g")),
    ],
)
async def test_an_action_is_carried_out_and_what_came_of_it_is_said(body: Any, asked: Any) -> None:
    admin = FakeAdmin()
    assert await act(admin, body) == (200, {"done": "done: " + " ".join(map(str, asked))})
    assert admin.asked == [asked]


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "drain",
        7,
        None,
        {"do": "delete", "id": ID},
        {"do": "drain"},
        {"do": "drain", "id": 255, "label": "work"},
        {"do": "drain", "id": ID},
        {"do": "drain", "id": "ff", "label": "work"},
        {"do": "drain", "id": "00000000000000FF", "label": "work"},
        {"do": "drain", "id": "\u0660" * 16, "label": "work"},
        {"do": "weight", "id": ID},
        {"do": "weight", "id": ID, "label": "work", "weight": 0},
        {"do": "weight", "id": ID, "label": "work", "weight": 65},
        {"do": "weight", "id": ID, "label": "work", "weight": True},
        {"do": "weight", "id": ID, "label": "work", "weight": 1.5},
        {"do": "pause", "label": "work"},
        {"do": "pause", "label": ["work"], "group": "g"},
        b"{",
        b"\xff",
        b"[" * 4000,
    ],
)
async def test_anything_else_is_refused_and_nothing_happens(body: Any) -> None:
    admin = FakeAdmin()
    status, answer = await act(admin, body)
    assert (status, admin.asked) == (400, [])
    assert answer["error"].startswith("not an action")


@pytest.mark.parametrize("error", [BusError("nobody is there"), BadArgument("nobody is there")])
async def test_an_action_that_came_to_nothing_says_why(error: Exception) -> None:
    admin = FakeAdmin()
    admin.error = error
    assert await act(admin, {"do": "drain", "id": ID, "label": "work"}) == (409, {"error": "nobody is there"})


async def test_a_form_of_another_page_cannot_be_an_action() -> None:
    admin = FakeAdmin()
    assert (await act(admin, b'{"do": "drain", "id": "00000000000000ff"}', **{"Content-Type": "text/plain"}))[0] == 415
    assert admin.asked == []


async def test_too_long_a_post_is_refused() -> None:
    admin = FakeAdmin()
    assert (await act(admin, {"do": "pause", "label": "x" * 5000, "group": "g"}))[0] == 413
    assert admin.asked == []


async def test_without_admin_there_is_no_such_path() -> None:
    assert (await act(None, {"do": "drain", "id": ID, "label": "work"}))[0] == 404
