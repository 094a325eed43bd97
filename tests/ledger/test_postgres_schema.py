"""The tables in PostgreSQL."""

from __future__ import annotations

import pytest

from rvq.errors import LedgerError
from tests.ledger.places import PostgresPlace, mark


async def test_a_user_without_the_right_to_create_can_use_what_is_there(postgres: PostgresPlace) -> None:
    schema = postgres.query("SELECT current_schema()")[0][0]
    role = f"worker_{schema}"
    postgres.query(f"CREATE ROLE {role} LOGIN")
    postgres.query(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    worker = PostgresPlace(postgres.dsn.replace("user=postgres", f"user={role}"))
    try:
        with pytest.raises(LedgerError, match=r"cannot be made or written: permission denied .*; give this"):
            await worker.ledger().open()
        async with postgres.ledger():
            pass
        postgres.query(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {schema} TO {role}")
        async with worker.ledger() as ledger, ledger.transaction(mark()) as tx:
            await tx.execute(worker.insert, (1,))
        assert postgres.effects() == [1]
    finally:
        postgres.query(f"DROP OWNED BY {role}")
        postgres.query(f"DROP ROLE {role}")


async def test_each_schema_on_the_search_path_can_have_a_ledger(postgres: PostgresPlace) -> None:
    async with postgres.ledger() as ledger, ledger.transaction(mark()):
        pass
    schema = f"{postgres.query('SELECT current_schema()')[0][0]}_other"
    postgres.query(f"CREATE SCHEMA {schema}")
    other = PostgresPlace(f"{postgres.dsn} options='-c search_path={schema}'")
    try:
        async with other.ledger() as ledger:
            assert not await ledger.is_marked(mark())
    finally:
        postgres.query(f"DROP SCHEMA {schema} CASCADE")


async def test_the_lock_of_creation_is_not_kept(postgres: PostgresPlace) -> None:
    async with postgres.ledger():
        assert postgres.query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


async def test_forgetting_passes_over_what_is_locked(postgres: PostgresPlace) -> None:
    import psycopg

    async with postgres.ledger() as ledger:
        for number in (1, 2):
            async with ledger.transaction(mark(number)):
                pass
        with psycopg.connect(postgres.dsn) as connection:
            connection.execute("SELECT * FROM rvq_marks WHERE sequence = 1 FOR UPDATE")
            assert await ledger.forget(4e9) == 1
        assert await ledger.forget(4e9) == 1
