"""Memory is bounded: with a receiver that stops reading, and with 10,000,000 messages passed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

from bench.figures import Figure
from bench.group.fleet import Fleet, Worker, judge

MEMORY_MB_MAX = 200
STALLED_S = 15.0
MESSAGES = 10_000_000
SIZES = (64, 1000)
"""Bytes of the messages behind one that stops reading: small ones cost more beside themselves, large ones more."""


def run_stalled(quick: bool) -> Iterator[Figure]:
    for size in SIZES:
        with Fleet() as fleet:
            fleet.start_receivers(2)
            stalled = fleet.receiver("--stall")
            fleet.await_members(3)
            sender = fleet.sender(50_000_000, size=size)
            stalled.when("stalled")
            time.sleep(3.0 if quick else STALLED_S)
            taken = sum(len(worker.numbers()) for worker in fleet.receivers)
            yield Figure(f"{size} bytes: handled by the others", taken, "messages")
            yield from _memory(f"{size} bytes: ", {"sender": [sender], "receivers": fleet.receivers[:2]})
            yield from _memory(f"{size} bytes: ", {"receiver that stopped reading": [stalled]})
            sender.signal(signal.SIGTERM)
            sender.when("undone", within=10)


def run_passed(quick: bool) -> Iterator[Figure]:
    count = MESSAGES // 20 if quick else MESSAGES
    with Fleet() as fleet:
        fleet.start_receivers(2)
        sender = fleet.sender(count, size=32)
        seconds = fleet.await_senders()
        yield Figure("messages", count)
        yield from _memory("", {"sender": [sender], "receivers": fleet.receivers})
        fleet.release()
        verdict = judge([count], (worker.numbers() for worker in fleet.receivers))
    yield Figure("lost, repeated or invented", verdict.lost + verdict.repeated + verdict.invented, most=0)
    yield Figure("rate", count / seconds, "messages/s")


def _memory(prefix: str, roles: dict[str, list[Worker]]) -> Iterator[Figure]:
    for role, workers in roles.items():
        megabytes = max(worker.rss_bytes for worker in workers) / 1e6
        yield Figure(f"{prefix}memory of {role}, most", megabytes, "MB", most=MEMORY_MB_MAX)
