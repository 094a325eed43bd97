"""What rvq offers is what INTERFACE says: names, their arguments, and errors of one family."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import pytest

import rvq
import rvq.sim

NAMES = {
    "AlreadyDone",
    "Backoff",
    "BadArgument",
    "BadLabel",
    "BadMessage",
    "Bus",
    "BusError",
    "Chosen",
    "Closed",
    "DeadLetter",
    "JournalDamaged",
    "JournalError",
    "JournalExpired",
    "Ledger",
    "LedgerError",
    "Message",
    "MessageTooLarge",
    "NotDelivered",
    "OrderFailed",
    "Receiver",
    "Recorder",
    "RvqError",
    "Sender",
    "Stats",
    "TableView",
    "admin",
    "catch_up",
    "consume",
    "metrics",
    "offer_again",
    "replay",
}

ERRORS = {
    "AlreadyDone",
    "BadArgument",
    "BadLabel",
    "BadMessage",
    "BusError",
    "Closed",
    "JournalDamaged",
    "JournalError",
    "JournalExpired",
    "LedgerError",
    "MessageTooLarge",
    "NotDelivered",
    "OrderFailed",
}

COUNTERS = {
    "inserted",
    "routed",
    "emitted",
    "acked",
    "retried",
    "dead",
    "expired",
    "repaired",
    "duplicates",
    "bad_frames",
    "handed_over",
    "strangers",
    "replayed",
    "lost",
    "unrecorded",
    "refused",
}

FACTS = {
    "body",
    "key",
    "headers",
    "label",
    "group",
    "sender",
    "sequence",
    "id",
    "sent_at",
    "due_at",
    "ttl",
    "expires_at",
    "urgent",
    "shard",
    "lane",
    "receiver_index",
    "attempt",
    "redelivered",
    "lost",
    "ack",
    "retry",
    "reject",
    "transaction",
}


def arguments(function: object) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(function).parameters)  # type: ignore[arg-type]


def test_these_names_and_no_others_are_public() -> None:
    assert set(rvq.__all__) == NAMES
    assert rvq.__all__ == sorted(rvq.__all__)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_public_name_says_what_it_is(name: str) -> None:
    assert inspect.getdoc(getattr(rvq, name))


def test_a_star_import_brings_exactly_these() -> None:
    namespace: dict[str, object] = {}
    exec("from rvq import *", namespace)
    assert set(namespace) - {"__builtins__"} == NAMES


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_is_of_one_family(name: str) -> None:
    assert issubclass(getattr(rvq, name), rvq.RvqError)


def test_errors_are_also_what_python_would_raise() -> None:
    assert issubclass(rvq.BadLabel, ValueError)
    assert issubclass(rvq.BadMessage, TypeError)
    assert rvq.NotDelivered(3).undone == 3


def test_a_sender_takes_these_arguments() -> None:
    given = arguments(rvq.Sender)
    assert {"label", "bus", "linger", "window", "hold"} <= set(given)
    assert given["linger"].default == 30.0
    assert all(given[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given if name != "label")


def test_a_receiver_takes_these_arguments() -> None:
    given = arguments(rvq.Receiver)
    assert {"label", "group", "weight", "ack", "bus", "ledger"} <= set(given)
    assert (given["group"].default, given["weight"].default, given["ack"].default) == ("default", 1, "auto")
    assert all(given[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given if name != "label")


def test_send_takes_these_arguments() -> None:
    assert {"body", "key", "headers", "delay", "due", "ttl", "urgent"} <= set(arguments(rvq.Sender.send))
    assert {"key", "headers", "delay", "due", "ttl", "urgent"} <= set(arguments(rvq.Sender.send_many))
    assert {"timeout"} <= set(arguments(rvq.Sender.flush))
    assert {"max"} <= set(arguments(rvq.Receiver.batches))


def test_consume_takes_these_arguments() -> None:
    given = arguments(rvq.consume)
    assert list(given)[:2] == ["label", "handler"]
    assert {"group", "concurrency", "attempts", "backoff", "ledger", "on_lost", "weight", "bus", "stop"} <= set(given)
    defaults = {name: given[name].default for name in ("group", "concurrency", "attempts", "ledger", "on_lost")}
    assert list(defaults.values()) == ["default", 1, 5, None, "cancel"]
    assert all(given[name].kind is inspect.Parameter.KEYWORD_ONLY for name in list(given)[2:])


def test_orders_take_these_arguments() -> None:
    for name in ("drain", "weight", "pause", "resume"):
        given = arguments(getattr(rvq.admin, name))
        assert {"label", "bus", "by"} <= set(given)
        assert all(given[name].kind is inspect.Parameter.KEYWORD_ONLY for name in ("bus", "by"))
    assert arguments(rvq.admin.pause)["group"].default == "default"


def test_a_dead_letter_has_these_facts() -> None:
    fields = {field.name for field in dataclasses.fields(rvq.DeadLetter)}
    assert fields >= {"id", "label", "group", "body", "key", "headers", "error", "traceback", "attempts"}
    assert fields >= {"sent_at", "died_at", "first_owner", "last_owner"}


def test_a_bus_takes_these_arguments() -> None:
    fields = {field.name for field in dataclasses.fields(rvq.Bus)}
    assert {"interface", "port", "address", "ttl", "key", "peers", "heartbeat", "expiry", "lease"} <= fields
    bus = rvq.Bus()
    assert (bus.interface, bus.heartbeat, bus.expiry, bus.lease) == ("lo", 0.2, 1.0, 1.0)


def test_a_ledger_takes_these_arguments() -> None:
    timeout = arguments(rvq.Ledger.sqlite)["timeout"]
    assert (timeout.default, timeout.kind) == (5.0, inspect.Parameter.KEYWORD_ONLY)
    given = arguments(rvq.Ledger.postgres)
    assert (given["connections"].default, given["lock_timeout"].default) == (8, 10.0)
    assert all(given[name].kind is inspect.Parameter.KEYWORD_ONLY for name in given if name != "dsn")


def test_a_message_has_these_facts() -> None:
    assert set(dir(rvq.Message)) >= FACTS


def test_stats_have_these_counters() -> None:
    counts = rvq.Stats().as_dict()
    assert set(counts) == COUNTERS | {"lanes", "shards"}
    assert all(counts[name] == 0 for name in COUNTERS)
    assert (counts["lanes"], counts["shards"]) == ({}, {})


def test_a_table_shows_version_members_and_index() -> None:
    assert {field.name for field in dataclasses.fields(rvq.TableView)} >= {"version", "members", "index"}


def test_the_simulator_is_public_too() -> None:
    for name in rvq.sim.__all__:
        assert inspect.getdoc(getattr(rvq.sim, name)), name


def test_importing_rvq_is_quiet_and_does_not_load_the_simulator_or_the_commands() -> None:
    ask = "import sys, rvq; print([name for name in sys.modules if name.startswith(('rvq.sim', 'rvq.cli'))])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_databases_are_imported_only_by_ledgers_of_theirs() -> None:
    ask = (
        "import sys, rvq; rvq.Ledger, rvq.Sender; print({'sqlite3', 'psycopg'} & set(sys.modules));"
        " rvq.Ledger.sqlite('work.db'); print('sqlite3' in sys.modules, 'psycopg' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\nTrue False\n"
