"""The page's own files: what is in them, and how they are served."""

from __future__ import annotations

import re

import pytest

from rvq.web import files
from rvq.web.server import Page
from tests.web.pictures import MadeUp
from tests.web.serving import HERE, visiting

FILES = files.load()
SCRIPTS = sorted(name for name in FILES if name.endswith(".js"))
PAGES = sorted(name for name in FILES if name.endswith(".html"))


def text_of(name: str) -> str:
    return FILES[name].body.decode()


def test_everything_that_the_pages_name_is_there() -> None:
    named = {name for page in PAGES for name in re.findall(r'(?:src|href)="/([\w.-]+)"', text_of(page))}
    named |= {name for script in SCRIPTS for name in re.findall(r'from "/([\w.-]+)"', text_of(script))}
    assert named <= FILES.keys()
    assert FILES.keys() - named == {"index.html", "login.html"}


@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_comes_from_elsewhere(name: str) -> None:
    allowed = {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"'`)]*", re.sub(r"(^|\s)//\s.*", "", text_of(name)))) <= allowed


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    ways = r"(inner|outer|Adjacent|set)HTML|document\.write|\beval\b|new Function|DOMParser|srcdoc|Fragment\("
    assert not re.findall(ways, text_of(name))


@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_scripts_or_styles_in_it(name: str) -> None:
    assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=)", text_of(name))


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_says_what_it_is_and_is_small(name: str) -> None:
    assert text_of(name).startswith("// ")
    assert text_of(name).count("\n") < 200


async def test_a_browser_that_has_a_file_is_not_sent_it_again() -> None:
    async with visiting(Page(MadeUp(), HERE)) as visitor:
        first = await visitor.get("/style.css")
        assert (first.status, first.content_type, first.charset) == (200, "text/css", "utf-8")
        assert (await first.read()) == FILES["style.css"].body
        again = await visitor.get("/style.css", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, await again.read()) == (304, b"")
        other = await visitor.get("/style.css", headers={"If-None-Match": '"other"'})
        assert other.status == 200


@pytest.mark.parametrize(
    "path", ["/index.html", "/../server.py", "/%2e%2e/server.py", "/static/", "/style.css/", "/nothing"]
)
async def test_no_other_path_leads_anywhere(path: str) -> None:
    async with visiting(Page(MadeUp(), HERE)) as visitor:
        assert (await visitor.get(path)).status == 404
