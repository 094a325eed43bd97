"""Who is kept out: strangers without the token, pages of other origins, names that lead here."""

from __future__ import annotations

import pytest

from rvq.web.guard import HEADERS
from rvq.web.server import Page
from tests.web.pictures import MadeUp
from tests.web.serving import ACTING, HERE, TOKEN, FakeAdmin, own_origin, visiting

PATHS = ("/", "/about", "/picture", "/pictures", "/history", "/main.js", "/act", "/nothing")
BROWSER = {"Accept": "text/html,application/xhtml+xml"}


@pytest.mark.parametrize("path", ["/", "/about", "/nothing", "/login", "/style.css"])
async def test_every_answer_has_the_headers(path: str) -> None:
    async with visiting(Page(MadeUp(), HERE, token=TOKEN)) as visitor:
        for headers in ({}, {"Host": "evil.example"}, {"Authorization": f"Bearer {TOKEN}"}):
            answer = await visitor.get(path, headers=headers, allow_redirects=False)
            assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
            assert answer.headers["Cache-Control"] in ("no-store", "no-cache")


def test_the_policy_lets_only_our_own_files_in() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "*" not in policy and "http" not in policy


@pytest.mark.parametrize("path", PATHS)
async def test_on_loopback_a_name_that_leads_here_gets_nothing(path: str) -> None:
    async with visiting(Page(MadeUp(), HERE)) as visitor:
        assert (await visitor.get(path, headers={"Host": "evil.example:7480"})).status == 421


async def test_on_loopback_without_a_token_nothing_is_asked_for() -> None:
    async with visiting(Page(MadeUp(), HERE)) as visitor:
        for path in ("/", "/about", "/picture", "/history", "/main.js"):
            assert (await visitor.get(path)).status == 200
        assert (await visitor.get("/login")).status == 404


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_token_a_script_is_told_and_a_person_is_asked(path: str) -> None:
    async with visiting(Page(MadeUp(), HERE, token=TOKEN)) as visitor:
        answer = await visitor.get(path)
        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        asked = await visitor.get(path, headers=BROWSER, allow_redirects=False)
        assert (asked.status, asked.headers["Location"]) == (303, "/login")


async def test_the_token_opens_to_scripts() -> None:
    async with visiting(Page(MadeUp(), HERE, token=TOKEN)) as visitor:
        for words, status in ((f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN}", 200), (f"Basic {TOKEN}", 401)):
            assert (await visitor.get("/picture", headers={"Authorization": words})).status == status
        for wrong in ("", "x", TOKEN[:-1], TOKEN + "x"):
            assert (await visitor.get("/picture", headers={"Authorization": f"Bearer {wrong}"})).status == 401


async def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    page = Page(MadeUp(), HERE, token=TOKEN)
    async with visiting(page) as visitor:
        answer = await visitor.post(
            "/login", data={"token": f" {TOKEN}\n"}, headers=own_origin(page), allow_redirects=False
        )
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        [cookie] = answer.headers.getall("Set-Cookie")
        assert cookie.startswith(f"rvq-{page.place.port}=")
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and TOKEN not in cookie
        assert (await visitor.get("/picture")).status == 200


async def test_a_wrong_token_brings_the_question_again() -> None:
    page = Page(MadeUp(), HERE, token=TOKEN)
    async with visiting(page) as visitor:
        for wrong in ({"token": "wrong"}, {"token": ""}, {}):
            answer = await visitor.post("/login", data=wrong, headers=own_origin(page), allow_redirects=False)
            assert (answer.status, answer.headers["Location"]) == (303, "/login#wrong")
            assert "Set-Cookie" not in answer.headers
        assert (await visitor.get("/picture")).status == 401


async def test_another_site_cannot_sign_anyone_in() -> None:
    page = Page(MadeUp(), HERE, token=TOKEN)
    async with visiting(page) as visitor:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {}):
            assert (await visitor.post("/login", data={"token": TOKEN}, headers=headers)).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_origin_may_lead_here_but_not_ask(site: str) -> None:
    """Another port of this machine is the same site, and another origin."""
    async with visiting(Page(MadeUp(), HERE)) as visitor:
        asking = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        for path in PATHS:
            assert (await visitor.get(path, headers=asking)).status == 403
        assert (await visitor.get("/", headers=asking | {"Sec-Fetch-Mode": "navigate"})).status == 200


async def test_an_action_needs_our_origin_and_the_mark_of_the_page() -> None:
    admin = FakeAdmin()
    page = Page(MadeUp(), HERE, admin=admin)
    asked = {"do": "pause", "label": "work", "group": "default"}
    async with visiting(page) as visitor:
        mark = {"X-RVQ-Mark": (await (await visitor.get("/about")).json())["mark"]}
        for headers in (
            ACTING,
            ACTING | mark,
            ACTING | own_origin(page),
            ACTING | own_origin(page) | {"X-RVQ-Mark": "0" * 64},
            ACTING | mark | {"Origin": "https://evil.example"},
            ACTING | mark | own_origin(page) | {"Sec-Fetch-Site": "cross-site"},
            ACTING | mark | own_origin(page) | {"Host": "evil.example"},
        ):
            assert (await visitor.post("/act", json=asked, headers=headers)).status in (403, 421)
        assert admin.asked == []
        answer = await visitor.post("/act", json=asked, headers=ACTING | mark | own_origin(page))
        assert (answer.status, admin.asked) == (200, [("pause", "work", "default")])


async def test_an_action_needs_the_token_too_where_there_is_one() -> None:
    admin = FakeAdmin()
    page = Page(MadeUp(), HERE, admin=admin, token=TOKEN)
    async with visiting(page) as visitor:
        known = {"Authorization": f"Bearer {TOKEN}"}
        mark = {"X-RVQ-Mark": (await (await visitor.get("/about", headers=known)).json())["mark"]}
        asked = {"do": "drain", "id": "0" * 16, "label": "work"}
        assert (await visitor.post("/act", json=asked, headers=ACTING | mark | own_origin(page))).status == 401
        assert (await visitor.post("/act", json=asked, headers=ACTING | mark | own_origin(page) | known)).status == 200
