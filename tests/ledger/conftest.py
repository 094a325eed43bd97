"""Places for ledgers: files, and databases of a real PostgreSQL server. Skipped where that cannot be had."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from rvq.ledger.ledger import Ledger
from tests.ledger.places import Place, PostgresPlace, SqlitePlace
from tests.ledger.server import Server, Unavailable

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)
    try:
        server = Server()
    except Unavailable as reason:
        pytest.skip(str(reason))
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture
def sqlite(tmp_path: Path) -> SqlitePlace:
    place = SqlitePlace(tmp_path / "work.db")
    place.query("CREATE TABLE effects (sequence INTEGER)")
    return place


@pytest.fixture
def postgres(server: Server) -> Iterator[PostgresPlace]:
    schema = f"ledger{next(_numbers)}"  # a database of its own for each would take a third of a second
    place = PostgresPlace(f"{server.dsn()} options='-c search_path={schema}'")
    place.query(f"CREATE SCHEMA {schema}")
    place.query("CREATE TABLE effects (sequence integer)")
    yield place
    place.query(f"DROP SCHEMA {schema} CASCADE")
    place.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """Each test with it runs on both databases."""
    found: Place = request.getfixturevalue(request.param)
    return found


@pytest.fixture
async def ledger(place: Place) -> AsyncIterator[Ledger]:
    async with place.ledger() as ledger:
        yield ledger


@pytest.fixture(autouse=True)
async def _nothing_is_left_behind() -> AsyncIterator[None]:
    tasks = asyncio.all_tasks()
    yield
    gc.collect(1)  # connections that nobody closed complain when they are collected, and warnings are errors
    left = {task for task in asyncio.all_tasks() - tasks if task is not asyncio.current_task()}
    assert not left, f"tasks without an owner: {left}"
    for thread in threading.enumerate():
        if thread.name.startswith("rvq-ledger"):
            thread.join(10)
            assert not thread.is_alive(), "a thread without an owner"
