"""Nothing lost, repeated or invented: 1,000,000 messages, 3 senders, 5 receivers, on loopback."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure
from bench.group.fleet import Fleet, judge

MESSAGES, SENDERS, RECEIVERS = 1_000_000, 3, 5
SIZE = 64
"""Bytes of each message."""


def run(quick: bool) -> Iterator[Figure]:
    total = MESSAGES // 10 if quick else MESSAGES
    counts = [total // SENDERS + (number < total % SENDERS) for number in range(SENDERS)]
    with Fleet() as fleet:
        fleet.start_receivers(RECEIVERS)
        for count in counts:
            fleet.sender(count, size=SIZE)
        seconds = fleet.await_senders()
        fleet.release()
        verdict = judge(counts, (worker.numbers() for worker in fleet.receivers))
        everyone = [worker.stats for worker in (*fleet.senders, *fleet.receivers)]
    yield Figure("messages", verdict.sent)
    yield Figure("lost", verdict.lost, most=0)
    yield Figure("repeated", verdict.repeated, most=0)
    yield Figure("invented", verdict.invented, most=0)
    yield Figure("rate", total / seconds, "messages/s")
    yield Figure("processor time per message, all processes", sum(s["cpu_s"] for s in everyone) / total * 1e6, "us")
    yield Figure("frames sent again", sum(stats["repaired"] for stats in everyone[:SENDERS]))
    yield Figure("memory of the largest process", max(s["rss_kib"] for s in everyone) / 1024, "MiB")
