"""The steps whose instructions are counted, and the program that takes them.

`python -m bench.micro.counted SHARE STEP…`: so much of the usual number of calls, of the steps of these names.

It says by a system call that nobody else makes where one step ends and the next begins; what counts the instructions
listens for that.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from bench.micro import acks, codec, lanes, single, stride

MARK = "getpgid"
"""The function of the C library that is the mark."""

WARM_UP = 20
"""Calls before those that count: Python makes code faster once it has run a few times."""


@dataclass(frozen=True)
class Step:
    """`parts` are the messages or reports of one call; `calls`, how many are counted in the smaller of two runs."""

    what: str
    call: Callable[[], object]
    parts: int = 1
    calls: int = 20
    part: str = "message"


def steps() -> list[Step]:
    bodies = [bytes(64) for _ in range(codec.COUNT)]
    records = codec.make_records(bodies)
    frame = codec.encode_batch(codec.AT, records)
    beat = codec._heartbeat()
    datagram = codec.encode_control(beat, codec.AT.label_tag)
    objects = stride.encode_batch(stride.AT, stride.make_records([{"job": number} for number in range(stride.COUNT)]))
    members = lanes._members(100)
    in_order = list(range(1, acks.COUNT + 1))
    shuffled = acks.shuffled_numbers()
    return [
        Step("nothing, for comparison", lambda: None, calls=1000),
        Step("codec: 64 bytes: pack", lambda: codec.make_records(bodies), codec.COUNT),
        Step("codec: 64 bytes: put in a frame", lambda: codec.encode_batch(codec.AT, records), codec.COUNT),
        Step(
            "codec: 64 bytes: read all of a frame",
            lambda: codec.read_batch(frame).contents(range(codec.COUNT)),
            codec.COUNT,
        ),
        Step("codec: heartbeat: write", lambda: codec.encode_control(beat, codec.AT.label_tag)),
        Step("codec: heartbeat: read", lambda: codec.decode_control(datagram)),
        Step("stride: a frame of 1,000 objects, for one receiver", lambda: stride.take(objects, 1), calls=5),
        Step("stride: for one of 20", lambda: stride.take(objects, 20)),
        Step("lanes: shard of a key", lambda: lanes.shard_of("user-7"), calls=100),
        Step("lanes: slots of 100 members", lambda: lanes.slots_of.__wrapped__(members)),
        Step("acks: done in order", lambda: acks._merge(in_order), acks.COUNT, calls=5),
        Step("acks: done in any order", lambda: acks._merge(shuffled), acks.COUNT, calls=5),
        Step("acks: a sender takes a report, of 5 receivers", lambda: acks._reports(5), 10 * 5, part="report"),
        Step("single: a message alone, sent", lambda: _sending().send(), calls=50),
        Step("single: at one of 3 receivers, which handles each third", lambda: _heard().hear(), single.RECEIVERS, 50),
    ]


@cache
def _sending() -> single.Line:
    """Made when it is asked for: it takes longer than all other steps."""
    return single.Line()


@cache
def _heard() -> single.Line:
    return single.Line().store(single.RECEIVERS * single.CALLS)


def take(step: Step, share: float) -> None:
    """Calls it some times, and twice as often: the difference is that of the calls alone."""
    calls = calls_of(step, share)
    _call(step.call, WARM_UP)
    mark()
    _call(step.call, calls)
    mark()
    _call(step.call, 2 * calls)
    mark()


def calls_of(step: Step, share: float) -> int:
    """In the smaller of the two runs; fewer where it need not be exact."""
    return max(1, round(step.calls * share))


def _call(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def mark() -> None:
    os.getpgid(0)


if __name__ == "__main__":
    gc.disable()
    for each in steps():
        if each.what in sys.argv[2:]:
            take(each, float(sys.argv[1]))
