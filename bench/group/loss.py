"""5 % loss at every receiver, on a LAN of network namespaces: everything arrives, and how fast."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.figures import Figure, Skipped
from bench.group.fleet import Fleet, Verdict, judge

sys.path.append(str(Path(__file__).parents[2]))
from tests.lan.network import Network, Unavailable, check_tools

RECEIVERS = ("r0", "r1", "r2")
MESSAGES, ROUNDS, SIZE, PERCENT = 200_000, 3, 64, 5


def run(quick: bool) -> Iterator[Figure]:
    count, rounds = (MESSAGES // 10, 1) if quick else (MESSAGES, ROUNDS)
    # In turns, so that a machine that is busy for a while is busy for both.
    runs = [(_measure(count, 0), _measure(count, PERCENT)) for _ in range(rounds)]
    wrong = sum(verdict.lost + verdict.repeated + verdict.invented for pair in runs for _, verdict in pair)
    free, lossy = (median(pair[which][0] for pair in runs) for which in (0, 1))
    yield Figure("loss at every receiver", PERCENT, "%")
    yield Figure("messages, without loss and with it", count * rounds * 2)
    yield Figure("lost, repeated or invented", wrong, most=0)
    yield Figure(f"rate without loss (median of {rounds})", free, "messages/s")
    yield Figure(f"rate with loss (median of {rounds})", lossy, "messages/s")
    yield Figure("of the rate without loss", 100 * lossy / free, "%", least=50)


def _measure(count: int, percent: int) -> tuple[float, Verdict]:
    """Messages per second, and what became of them."""
    try:
        check_tools()
        network = Network(f"bench{percent}")
    except Unavailable as reason:
        raise Skipped(str(reason)) from reason
    try:
        network.add_hosts(["s", *RECEIVERS])
        if percent:
            network.lose(percent, RECEIVERS)
        return _measure_on(network, count)
    except Unavailable as reason:
        raise Skipped(str(reason)) from reason
    finally:
        network.remove()


def _measure_on(network: Network, count: int) -> tuple[float, Verdict]:
    with Fleet(port=7400, interface="eth0") as fleet:
        for host in RECEIVERS:
            fleet.receiver(prefix=network.on(host))
        fleet.await_members(len(RECEIVERS))
        fleet.sender(count, prefix=network.on("s"), size=SIZE)
        seconds = fleet.await_senders()
        fleet.release()
        return count / seconds, judge([count], (worker.numbers() for worker in fleet.receivers))
