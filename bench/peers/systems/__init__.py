"""Each system that is measured: how one receiver and one sender of it are written by someone who knows it well."""

from __future__ import annotations

from bench.peers.systems import bare, nats, redis_lists, redis_streams, rvq_batches, rvq_each, zmq_blocking, zmq_uvloop
from bench.peers.systems.system import Job, System

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        rvq_batches.SYSTEM,
        rvq_each.SYSTEM,
        bare.SYSTEM,
        redis_lists.SYSTEM,
        zmq_blocking.SYSTEM,
        nats.SYSTEM,
        redis_streams.SYSTEM,
        zmq_uvloop.SYSTEM,
    )
}

__all__ = ["SYSTEMS", "Job", "System"]
