"""Who owns what, from the stamps alone: groups of different sizes, and the shard map of keys."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from bench.figures import Figure
from bench.micro.clock import ns_per_call
from rvq.core.shards import deal, draft
from rvq.core.table import slots_of
from rvq.wire.frames import Member
from rvq.wire.records import shard_of


def run(quick: bool) -> Iterator[Figure]:
    yield Figure("shard of a key", ns_per_call(lambda: shard_of("user-7"), quick), "ns")
    for size in (5, 100, 1000):
        members = _members(size)
        yield Figure(
            f"slots of {size:,} members", ns_per_call(lambda m=members: slots_of.__wrapped__(m), quick) / 1e3, "us"
        )
        first = draft(members)
        cost = ns_per_call(lambda m=members: draft(m), quick) / 1e6
        yield Figure(f"shard map of {size:,} members (first table)", cost, "ms")
        cost = ns_per_call(lambda m=members, f=first: deal.__wrapped__(m, f, m[1:]), quick) / 1e6
        yield Figure(f"shard map of {size:,} members (next table)", cost, "ms")
    moved = _moved(20)
    yield Figure("shards that move when a 21st joins 20 (even share 4.76 %)", 100 * moved, "%")


def _members(count: int) -> tuple[Member, ...]:
    random = Random(1)
    return tuple(sorted(Member(random.getrandbits(63), 1) for _ in range(count)))


def _moved(count: int) -> float:
    before = _members(count + 1)[1:]
    after = _members(count + 1)
    first = draft(before)
    owners = [(before[a].id, after[b].id) for a, b in zip(first, deal(before, first, after), strict=True)]
    return sum(old != new for old, new in owners) / len(owners)
