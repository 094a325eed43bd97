"""A fleet of processes on a loopback bus of its own, gone after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.harness import Fleet


@pytest.fixture
def fleet(tmp_path: Path, port: int) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, port)
    try:
        yield fleet
    finally:
        fleet.end()
