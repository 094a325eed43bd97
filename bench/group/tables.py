"""Tables in the simulator: a hundred receivers that join in one second, and a group of a thousand."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from functools import lru_cache
from unittest.mock import patch

from bench.figures import Figure
from rvq.sim import World
from rvq.timings import Timings
from rvq.wire.codec import decode_control

JOINERS, MEMBERS = 100, 1000


def run(quick: bool) -> Iterator[Figure]:
    yield from _joiners(JOINERS)
    yield from _thousand(100 if quick else MEMBERS)


def _joiners(count: int) -> Iterator[Figure]:
    """They join a group of two that is at work."""
    written: list[str] = []
    world = World(seed=1, verbose=1, out=lambda line: written.append(line) if "wrote table" in line else None)
    world.sender("work", messages=200, rate=50)
    for _ in range(2):
        world.receiver("work")
    world.run(until=3.0)
    written.clear()
    for _ in range(count):
        world.after(world.random.random(), lambda: world.receiver("work"))
    began = time.process_time()
    settled_at = _until_all_are_in(world, count + 2)
    tables = len(written)
    world.run()
    world.verdict().raise_if_bad()
    yield Figure(f"{count} join in one second: tables written", tables, most=2)
    yield Figure(f"{count} join in one second: all in after", settled_at - 3.0, "s (virtual)")
    yield Figure(f"{count} join in one second: took", time.process_time() - began, "s of processor time")


def _thousand(count: int) -> Iterator[Figure]:
    """They join one that is there, all at once. Heartbeats are slow: every one of them is heard by a thousand."""
    written: list[str] = []
    world = World(
        seed=2,
        timings=Timings(heartbeat=5.0, expiry=20.0, lease=20.0, orphan_for=60.0),
        verbose=1,
        out=lambda line: written.append(line) if "wrote table" in line else None,
    )
    sender = world.sender("work", messages=20, rate=100)
    world.receiver("work")
    world.run(until=20.0)
    written.clear()
    for _ in range(count - 1):
        world.after(world.random.uniform(0.0, 0.05), lambda: world.receiver("work"))
    began = time.process_time()
    # Two million heartbeats are heard, of which two thousand differ: each is decoded once. And a million peers are
    # remembered, which the garbage collector would look through again and again.
    gc.disable()
    try:
        with patch("rvq.core.receiver.decode_control", lru_cache(maxsize=4096)(decode_control)):
            settled_at = _until_all_are_in(world, count)
    finally:
        gc.enable()
    in_force = sender.machine.tables["default"]  # type: ignore[attr-defined]
    yield Figure(f"{count:,} members: in the table in force at the sender", len(in_force.members), least=count)
    yield Figure(f"{count:,} members: tables written", len(written))
    yield Figure(f"{count:,} members: in force after", settled_at - 20.0, "s (virtual)")
    yield Figure(f"{count:,} members: took", time.process_time() - began, "s of processor time")


def _until_all_are_in(world: World, count: int) -> float:
    """Until the sender's table in force has that many members. The virtual time of it."""
    machine = world.senders[0].machine
    while world.now < 60:
        tables = machine.tables  # type: ignore[attr-defined]
        if tables and len(tables["default"].members) == count:
            break
        world.run(until=world.now + 0.02)
    return world.now
