"""One message at a time, by the clock, for latencies: each carries the time at which it was sent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable

from bench.peers.board import NUMBER_BYTES, Tally, monotonic

monotonic_ns = time.monotonic_ns
_AT_END = 2 * NUMBER_BYTES


class Pace:
    """Bodies when they are due, the time in place of their second 8 bytes.

    It sleeps in the thread: event loops sleep for whole milliseconds, and a loop that only spins would take a core from
    those whose latency is measured. One turn of the loop follows, so that nothing else is held up for long.
    """

    def __init__(self, rate: float, bodies: Iterable[bytes]) -> None:
        self._rate = rate
        self._bodies = bodies

    async def __aiter__(self) -> AsyncIterator[bytes]:
        began = monotonic()
        for place, body in enumerate(self._bodies):
            ahead = began + place / self._rate - monotonic()
            if ahead > 0:
                time.sleep(ahead)
            await asyncio.sleep(0)
            yield body[:NUMBER_BYTES] + monotonic_ns().to_bytes(NUMBER_BYTES, "little") + body[_AT_END:]


def note(tally: Tally, body: bytes) -> None:
    """The number and its latency, in nanoseconds, packed into one: nobody sends 2 ** 32 messages here."""
    now = monotonic_ns()
    latency = now - int.from_bytes(body[NUMBER_BYTES:_AT_END], "little")
    number = int.from_bytes(body[:NUMBER_BYTES], "little")
    tally.seen += (latency << 32 | number).to_bytes(NUMBER_BYTES, "little")


def latencies_us(noted: Iterable[int]) -> list[float]:
    return [value / 1000 for value in (packed >> 32 for packed in noted)]


def numbers(noted: Iterable[int]) -> list[int]:
    return [packed & 0xFFFF_FFFF for packed in noted]
