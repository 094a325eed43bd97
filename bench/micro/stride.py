"""A receiver walks only its own stride: what it does not own costs it almost nothing."""

from __future__ import annotations

from collections.abc import Iterator

from bench.figures import Figure
from bench.micro.clock import ns_per_call
from bench.micro.codec import AT
from rvq.wire.batch import encode_batch, own_stride, read_batch
from rvq.wire.records import make_records

COUNT = 1000


def run(quick: bool) -> Iterator[Figure]:
    frame = encode_batch(AT, make_records([{"job": number} for number in range(COUNT)]))
    alone = _cost(frame, 1, quick)
    yield Figure(f"a frame of {COUNT} objects, for one receiver", alone / 1000, "us")
    for receivers in (2, 5, 20, 100):
        share = _cost(frame, receivers, quick)
        yield Figure(f"for one of {receivers}", share / 1000, "us")
        yield Figure(
            f"for one of {receivers}, of the whole (even share {100 / receivers:.3g} %)", 100 * share / alone, "%"
        )


def _cost(frame: bytes, receivers: int, quick: bool) -> float:
    return ns_per_call(lambda: take(frame, receivers), quick)


def take(frame: bytes, receivers: int) -> object:
    """What one of so many receivers does with a frame."""
    return read_batch(frame).contents(own_stride(1, COUNT, 0, receivers))
