"""Idle connections: kept if they are as new, closed if not."""

from __future__ import annotations

import pytest

from tests.ledger.places import PostgresPlace

psycopg = pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)

from psycopg.rows import dict_row  # noqa: E402

from rvq.ledger.postgres_pool import PostgresPool  # noqa: E402
from rvq.ledger.postgres_server import PostgresServer  # noqa: E402


@pytest.fixture
def pool(postgres: PostgresPlace) -> PostgresPool:
    return PostgresPool(PostgresServer(postgres.dsn, 10))


async def test_a_connection_is_used_again(pool: PostgresPool) -> None:
    connection, was_used = await pool.take()
    assert not was_used
    connection.row_factory = dict_row
    await pool.give_back(connection)
    assert await pool.take() == (connection, True)
    assert await (await connection.execute("SELECT 1")).fetchone() == (1,), "rows are as new, too"
    await pool.give_back(connection)
    await pool.aclose()
    assert connection.closed


async def test_a_blocking_connection_is_used_again(pool: PostgresPool) -> None:
    connection, was_used = pool.take_blocking()
    assert not was_used
    connection.row_factory = dict_row
    pool.give_back_blocking(connection)
    assert pool.take_blocking() == (connection, True)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    pool.give_back_blocking(connection)
    await pool.aclose()
    assert connection.closed


async def test_one_with_a_transaction_open_is_closed(pool: PostgresPool) -> None:
    connection, _ = await pool.take()
    await connection.execute("BEGIN")
    await pool.give_back(connection)
    assert connection.closed
    blocking, _ = pool.take_blocking()
    blocking.execute("BEGIN")
    pool.give_back_blocking(blocking)
    assert blocking.closed


async def test_one_that_is_closed_is_not_kept(pool: PostgresPool) -> None:
    connection, _ = await pool.take()
    await connection.close()
    await pool.give_back(connection)
    other, was_used = await pool.take()
    assert not was_used
    await other.close()
