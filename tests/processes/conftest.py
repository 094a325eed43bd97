"""A fleet of processes on a loopback bus of its own, gone after the test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rvq
from tests.processes.harness import Fleet

PEERS = os.environ.get("TEST_PEERS")
"""`make fanout`: all of these tests on a bus without multicast, which finds its ends at these hosts."""


@pytest.fixture(autouse=True)
def _peers(monkeypatch: pytest.MonkeyPatch, _no_settings_from_outside: None) -> None:
    if PEERS:
        monkeypatch.setenv("RVQ_PEERS", PEERS)


@pytest.fixture
def bus(port: int, _peers: None) -> rvq.Bus:
    """A bus that is this test's alone, and its processes'."""
    return rvq.Bus.from_env(port=port)


@pytest.fixture
def fleet(tmp_path: Path, port: int) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, port)
    try:
        yield fleet
    finally:
        fleet.end()
