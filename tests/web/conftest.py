"""Fixtures of the page's tests: one browser for each module that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.web.browser import Browser, browsing, missing


@pytest.fixture(scope="module")
def _browser() -> Iterator[Any]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with browsing() as driver:
        yield driver


@pytest.fixture
def browser(_browser: Any) -> Iterator[Browser]:
    """A browser as wide as a desk's, in light, with nothing said to the console. Nothing may be said at the end."""
    one = Browser(_browser)
    one.calm()
    yield one
    assert one.errors() == []
