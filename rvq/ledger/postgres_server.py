"""The PostgreSQL server of a ledger: how it is reached, and what went wrong. Owns settings of connections and words.

A session is set so that a client which is gone does not keep a mark locked: the server looks for it during long
statements (`client_connection_check_interval`) and probes a silent host (`tcp_keepalives_*`); and so that done means
on disk (`synchronous_commit`). What the dsn, the role or the server's configuration says comes first.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from rvq.errors import LedgerError

CONNECT_S = 10
"""A host that does not answer is given up after this, unless the dsn has a connect_timeout."""

_WHEN_UNSET = {
    "client_connection_check_interval": "1s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""A host that vanished is noticed after 25 s. Servers before 14 have no check interval, and are not asked for one."""

_SET_WHEN_UNSET = (
    "SELECT set_config(name, wish, false) FROM pg_settings"
    " JOIN unnest(%s::text[], %s::text[]) AS wishes (name, wish) USING (name) WHERE source = 'default'"
)
_SET_ALWAYS = (
    "SELECT set_config('lock_timeout', %s, false),"
    " CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"
)

AnyConnection = psycopg.AsyncConnection[Any] | psycopg.Connection[Any]


class PostgresServer:
    """Makes connections. In autocommit, so that a question leaves no transaction open; transactions are blocks."""

    def __init__(self, dsn: str, lock_timeout: float) -> None:
        try:
            given = conninfo_to_dict(dsn)
        except (psycopg.Error, AttributeError, TypeError):
            # Neither shown nor chained: what libpq says of it can have the password in it.
            raise LedgerError("dsn is not one: give 'postgresql://user@host/database' or 'host=… dbname=…'") from None
        self._conninfo = make_conninfo("", **{"connect_timeout": CONNECT_S, "application_name": "rvq", **given})
        self.name = "/".join(str(given[part]) for part in ("host", "port", "dbname") if part in given) or "PostgreSQL"
        self.lock_timeout = lock_timeout

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        try:
            connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self.unreachable(error) from error
        try:
            for statement, parameters in self._settings():
                await connection.execute(statement, parameters)
        except BaseException as error:
            await connection.close()
            if isinstance(error, psycopg.Error):
                raise self.unreachable(error) from error
            raise
        return connection

    def connect_blocking(self) -> psycopg.Connection[Any]:
        try:
            connection = psycopg.Connection.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self.unreachable(error) from error
        try:
            for statement, parameters in self._settings():
                connection.execute(statement, parameters)
        except BaseException as error:
            connection.close()
            if isinstance(error, psycopg.Error):
                raise self.unreachable(error) from error
            raise
        return connection

    def _settings(self) -> list[tuple[Any, list[Any]]]:
        return [
            (_SET_WHEN_UNSET, [list(_WHEN_UNSET), list(_WHEN_UNSET.values())]),
            (_SET_ALWAYS, [str(max(1, round(self.lock_timeout * 1000)))]),
        ]

    def unreachable(self, error: psycopg.Error) -> LedgerError:
        """No connection could be made."""
        return LedgerError(
            f"the ledger's database {self.name} cannot be reached: {_line(error)}; check the dsn, and that it runs"
        )

    def lost(self, error: psycopg.Error) -> LedgerError:
        """A connection ended in the middle."""
        return LedgerError(
            f"the ledger's database {self.name} went away: {_line(error)}; whether the message is done, its mark says:"
            " try again"
        )

    def wrong(self, error: psycopg.Error) -> LedgerError:
        """The one sentence for an error that is not the user's own."""
        if is_lost(error):
            return self.lost(error)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return LedgerError(
                f"another transaction had this mark locked for {self.lock_timeout:g} s: try again later, look for a"
                " process that is stopped, or raise lock_timeout="
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return LedgerError(
                f"the ledger's tables in {self.name} cannot be made or written: {_line(error)}; give this user the"
                " rights, or let another open the ledger once"
            )
        return LedgerError(f"the ledger's database {self.name} failed: {_line(error)}; see its log")


def is_lost(error: BaseException) -> TypeGuard[psycopg.Error]:
    """Whether the error means that the connection is gone, and its transaction with it.

    Errors without a code are not the server's words: libpq could not talk to it.
    """
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(("08", "57P"))


def _line(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
