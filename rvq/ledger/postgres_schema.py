"""The tables of a PostgreSQL ledger and every statement on them. Owns their version and how they come to be."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from rvq.errors import LedgerError
from rvq.ledger.version import check_version

VERSION = 1
"""Of the tables. A ledger of another version is refused."""

FORGET_ROWS = 1000
"""Marks that are dropped in one statement: none of them is locked for long."""

_CREATION = 0x727671_6C65646772
"""An advisory lock ("rvqledgr"): IF NOT EXISTS alone fails when two create a table at the same moment."""

_TABLES = (
    "CREATE TABLE rvq_ledger (version integer NOT NULL)",
    'CREATE TABLE rvq_marks (label text COLLATE "C" NOT NULL, group_name text COLLATE "C" NOT NULL,'
    " sender bigint NOT NULL, sequence bigint NOT NULL, done_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " PRIMARY KEY (label, group_name, sender, sequence))",
    "CREATE INDEX rvq_marks_done_at ON rvq_marks (done_at)",
    f"INSERT INTO rvq_ledger VALUES ({VERSION})",
)
_FIND = "SELECT relname FROM pg_class WHERE relname IN ('rvq_ledger', 'rvq_marks') AND pg_table_is_visible(oid)"

INSERT = "INSERT INTO rvq_marks (label, group_name, sender, sequence) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
SELECT = "SELECT 1 FROM rvq_marks WHERE label = %s AND group_name = %s AND sender = %s AND sequence = %s"
FORGET = (
    "DELETE FROM rvq_marks WHERE ctid = ANY (ARRAY("
    f"SELECT ctid FROM rvq_marks WHERE done_at < to_timestamp(%s) LIMIT {FORGET_ROWS} FOR UPDATE SKIP LOCKED))"
)


async def prepare(connection: AsyncConnection[Any], where: str) -> None:
    """Creates the tables, or checks those that are there. Looks first: a user without the right to create may go on."""
    if not await _has_tables(connection, where):
        # The lock is the session's, taken before the transaction begins: one that waited for it inside would look
        # with the eyes of before. If this fails, the connection is closed, and the lock is free.
        await connection.execute("SELECT pg_advisory_lock(%s)", [_CREATION])
        async with connection.transaction():
            if not await _has_tables(connection, where):
                for statement in _TABLES:
                    await connection.execute(statement)
        await connection.execute("SELECT pg_advisory_unlock(%s)", [_CREATION])
    versions = await connection.execute("SELECT version FROM rvq_ledger")
    check_version(await versions.fetchall(), VERSION, where)


async def _has_tables(connection: AsyncConnection[Any], where: str) -> bool:
    tables = [name for (name,) in await (await connection.execute(_FIND)).fetchall()]
    if len(tables) == 1:
        raise LedgerError(f"{where} has a table {tables[0]} that is not a ledger's: rename it")
    return bool(tables)
