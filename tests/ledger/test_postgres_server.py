"""How the server is reached, what a session is set to, and the words for what goes wrong."""

from __future__ import annotations

import socket

import pytest

from rvq.errors import LedgerError
from tests.ledger.places import PostgresPlace

psycopg = pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)

from rvq.ledger.postgres_server import PostgresServer, is_lost  # noqa: E402


@pytest.mark.parametrize("dsn", ["postgres//worker:secret@host/work", "host=a secret", "secret", 7, None])
def test_a_dsn_that_is_none_is_refused_without_repeating_its_password(dsn: str) -> None:
    with pytest.raises(LedgerError, match="dsn is not one: give 'postgresql://user@host/database'") as caught:
        PostgresServer(dsn, 10)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_a_server_that_cannot_be_reached_is_named_without_the_password() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))  # and nobody listens
        server = PostgresServer(f"postgresql://worker:secret@127.0.0.1:{sock.getsockname()[1]}/work", 10)
        with pytest.raises(LedgerError, match=r"work cannot be reached: .*refused.*; check the dsn") as awaited:
            await server.connect()
        with pytest.raises(LedgerError, match="work cannot be reached") as blocking:
            server.connect_blocking()
    for caught in (awaited, blocking):
        assert isinstance(caught.value.__cause__, psycopg.OperationalError)
        assert "secret" not in f"{caught.value} {caught.value.__cause__}"


async def test_a_session_notices_clients_that_are_gone_and_waits_for_the_disk(postgres: PostgresPlace) -> None:
    server = PostgresServer(postgres.dsn, 2.5)
    connection = await server.connect()
    settings = {name: await shown(connection, name) for name in ("lock_timeout", "client_connection_check_interval")}
    assert settings == {"lock_timeout": "2500ms", "client_connection_check_interval": "1s"}
    assert await shown(connection, "tcp_keepalives_idle") == "10"
    assert await shown(connection, "synchronous_commit") == "on"
    assert await shown(connection, "application_name") == "rvq"
    assert connection.autocommit
    await connection.close()


async def test_what_the_dsn_says_comes_first_except_for_an_unsafe_commit(postgres: PostgresPlace) -> None:
    wishes = "-c client_connection_check_interval=7s -c tcp_keepalives_idle=77 -c synchronous_commit=off"
    server = PostgresServer(f"{postgres.dsn} application_name=mine options='{wishes}'", 10)
    connection = server.connect_blocking()
    assert connection.execute("SHOW tcp_keepalives_idle").fetchone() == ("77",)
    assert connection.execute("SHOW application_name").fetchone() == ("mine",)
    assert connection.execute("SHOW client_connection_check_interval").fetchone() == ("7s",)
    assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    connection.close()


async def shown(connection: psycopg.AsyncConnection, name: str) -> str:
    row = await (await connection.execute(f"SHOW {name}")).fetchone()
    return str(row[0])


def test_errors_of_the_servers_own_words_do_not_mean_that_it_is_gone() -> None:
    assert is_lost(psycopg.OperationalError("server closed the connection unexpectedly"))
    assert is_lost(psycopg.errors.AdminShutdown("terminating"))
    assert not is_lost(psycopg.errors.LockNotAvailable("lock timeout"))
    assert not is_lost(psycopg.errors.UniqueViolation("twice"))
    assert not is_lost(ConnectionResetError())


def test_each_kind_of_failure_says_what_to_do() -> None:
    server = PostgresServer("host=db.example dbname=work", 3)
    assert "locked for 3 s: try again later" in str(server.wrong(psycopg.errors.LockNotAvailable("x")))
    assert "give this user the rights" in str(server.wrong(psycopg.errors.InsufficientPrivilege("x")))
    assert "db.example/work went away: x; whether" in str(server.wrong(psycopg.errors.AdminShutdown("x")))
    assert str(server.wrong(psycopg.DataError("a\n  b"))).endswith("failed: a b; see its log")
