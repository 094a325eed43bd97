"""A network and a fleet on it: what the tests of this folder are given."""

from __future__ import annotations

import pytest

from tests.lan.network import Network, Unavailable
from tests.processes.harness import Fleet, Worker


class Lan:
    """Hosts, and a worker on each: the sender or receiver of the host's name."""

    def __init__(self, network: Network, fleet: Fleet) -> None:
        self.network = network
        self.fleet = fleet

    def start_receivers(self, *names: str, **options: object) -> list[Worker]:
        """Awaited until each sees all of them."""
        workers = [self.receiver(name, **options) for name in names]
        self.fleet.await_members(workers)
        return workers

    def receiver(self, host: str, **options: object) -> Worker:
        return self.fleet.receiver(host, **{"prefix": self.network.on(host), **options})

    def sender(self, host: str, **options: object) -> Worker:
        return self.fleet.sender(host, **{"prefix": self.network.on(host), **options})

    def lose(self, percent: int, *hosts: str) -> None:
        try:
            self.network.lose(percent, hosts)
        except Unavailable as reason:
            pytest.skip(str(reason))

    def drop_multicast(self, *hosts: str) -> None:
        try:
            self.network.drop_multicast(hosts)
        except Unavailable as reason:
            pytest.skip(str(reason))
