"""Fixtures of the commands' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.processes import Commands


@pytest.fixture
def commands(port: int) -> Iterator[Commands]:
    """Real processes on a bus of their own."""
    running = Commands(port)
    yield running
    running.close()
