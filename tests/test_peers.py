"""Seeds as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from rvq.errors import BusError
from rvq.limits import SEED_PORTS, SEEDS_MAX
from rvq.peers import Seed, parse_seeds, seed_ports


@pytest.mark.parametrize(
    ("written", "seed"),
    [
        ("10.0.0.1", Seed("10.0.0.1", 7400, 7400 + SEED_PORTS - 1)),
        (" queue.example ", Seed("queue.example", 7400, 7400 + SEED_PORTS - 1)),
        ("10.0.0.1:9000", Seed("10.0.0.1", 9000, 9000)),
        ("10.0.0.1:9000-9003", Seed("10.0.0.1", 9000, 9003)),
        ("[fd00::1]:9000", Seed("fd00::1", 9000, 9000)),
        ("fd00::1", Seed("fd00::1", 7400, 7400 + SEED_PORTS - 1)),
    ],
)
def test_a_seed_is_a_host_and_perhaps_ports(written: str, seed: Seed) -> None:
    assert parse_seeds([written], 7400) == (seed,)


@pytest.mark.parametrize(
    "peers",
    [
        "10.0.0.1",
        5,
        [""],
        [7],
        [":7400"],
        ["a b"],
        ["a,b"],
        ["a:"],
        ["a:x"],
        ["a:0"],
        ["a:65536"],
        ["a:9-8"],
        ["a:1-999"],
        ["a:²"],
        ["a:99999999999999999999"],
        ["[::1"],
        ["[::1]x"],
        ["a"] * (SEEDS_MAX + 1),
    ],
)
def test_what_is_no_list_of_hosts_is_refused_in_a_sentence(peers: Any) -> None:
    with pytest.raises(BusError, match=r"^peers=.*: (give HOST, HOST:PORT or HOST:FIRST-LAST|name 64 at most)"):
        parse_seeds(peers, 7400)


def test_the_ports_of_a_bus_end_where_ports_end() -> None:
    assert list(seed_ports(65_530)) == list(range(65_530, 65_536))
