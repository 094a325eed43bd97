"""What soaks need of a machine. Skipped where that cannot be had."""

from __future__ import annotations

import pytest

from tests.lan.network import Network, Unavailable, check_tools


@pytest.fixture
def can_have_hosts() -> None:
    try:
        check_tools()
        network = Network("soakprobe")
    except Unavailable as reason:
        pytest.skip(str(reason))
    network.remove()
