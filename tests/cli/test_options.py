"""Which bus the options name."""

from __future__ import annotations

import argparse

import pytest

from rvq.bus import Bus
from rvq.cli.options import add_bus_arguments, bus_from
from rvq.errors import BusError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_bus_arguments(parser)
    return parser.parse_args(arguments)


def test_without_options_it_is_the_default_bus() -> None:
    assert bus_from(parsed()) == Bus()


def test_options_name_a_bus() -> None:
    named = parsed("--interface", "eth7", "--port", "7555", "--address", "239.1.0.0/16")
    assert bus_from(named) == Bus(interface="eth7", port=7555, address="239.1.0.0/16")


def test_an_option_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RVQ_PORT", "7001")
    monkeypatch.setenv("RVQ_INTERFACE", "eth7")
    assert bus_from(parsed("--port", "7002")) == Bus(interface="eth7", port=7002)


def test_a_key_file_is_that_of_the_option_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bus_from(parsed("--key-file", "bus.key")) == Bus(key="bus.key")
    monkeypatch.setenv("RVQ_KEY_FILE", "other.key")
    assert bus_from(parsed()) == Bus(key="other.key")
    assert bus_from(parsed("--key-file", "bus.key")) == Bus(key="bus.key")


def test_an_empty_option_is_not_the_same_as_none() -> None:
    with pytest.raises(BusError):
        bus_from(parsed("--port", ""))
