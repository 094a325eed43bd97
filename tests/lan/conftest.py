"""A network of its own for each test, and a fleet on its hosts. Skipped where that cannot be had."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lan.lan import Lan
from tests.lan.network import Network, Unavailable, check_tools
from tests.processes.harness import Fleet

_numbers = itertools.count()


@pytest.fixture
def lan(tmp_path: Path) -> Iterator[Lan]:
    try:
        check_tools()
        network = Network(f"lan{next(_numbers)}")
    except Unavailable as reason:
        pytest.skip(str(reason))
    fleet = Fleet(tmp_path, port=7400, interface="eth0")  # the default port: nobody else is on this network
    try:
        yield Lan(network, fleet)
    finally:
        try:
            fleet.end()
        finally:
            network.remove()
