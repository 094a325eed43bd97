"""Databases to keep a ledger in, with a table for effects: one row for each time that a message was handled."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any

from rvq.ledger.ledger import Ledger
from rvq.ledger.mark import Mark


def mark(sequence: int = 1, *, label: str = "work", group: str = "default", sender: int = 0xFEDCBA9876543210) -> Mark:
    return Mark(label, group, sender, sequence)


class Place(ABC):
    """`name` is how a worker finds it; `insert` is a handler's statement."""

    kind: str
    name: str
    insert: str

    @abstractmethod
    def ledger(self, patience: float = 20.0) -> Ledger:
        """A ledger there, that waits so long for others."""

    @abstractmethod
    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Asked from outside of any ledger: what is committed. Statements without rows return none."""

    def effects(self) -> list[int]:
        """The sequences of all effects, sorted: one that happened twice is there twice."""
        return sorted(sequence for (sequence,) in self.query("SELECT sequence FROM effects"))

    def marks(self) -> list[int]:
        return sorted(sequence for (sequence,) in self.query("SELECT sequence FROM rvq_marks"))


class SqlitePlace(Place):
    kind = "sqlite"
    insert = "INSERT INTO effects VALUES (?)"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = f"sqlite:{path}"

    def ledger(self, patience: float = 20.0) -> Ledger:
        return Ledger.sqlite(self.path, timeout=patience)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=20)) as connection:
            return connection.execute(sql).fetchall()


class PostgresPlace(Place):
    kind = "postgres"
    insert = "INSERT INTO effects VALUES (%s)"

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.name = f"postgres:{dsn}"
        self._connection: Any = None

    def ledger(self, patience: float = 20.0, connections: int = 8) -> Ledger:
        return Ledger.postgres(self.dsn, connections=connections, lock_timeout=patience)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            self._connection = self._connection or psycopg.connect(self.dsn, autocommit=True)
            cursor = self._connection.execute(sql)
        except psycopg.OperationalError:
            self.close()  # the server was killed since
            self._connection = psycopg.connect(self.dsn, autocommit=True)
            cursor = self._connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def find(name: str) -> Place:
    """The place of this name, in another process."""
    kind, where = name.split(":", 1)
    return SqlitePlace(Path(where)) if kind == "sqlite" else PostgresPlace(where)
