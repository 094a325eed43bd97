"""What packing and reading cost: messages, batches and control frames, per message and against plain msgpack."""

from __future__ import annotations

from collections.abc import Iterator

import msgpack

from bench.figures import Figure
from bench.micro.clock import ns_per_call
from rvq.wire.batch import Stamped, encode_batch, read_batch
from rvq.wire.codec import decode_control, encode_control
from rvq.wire.frames import Alive, Heard, LaneProgress, StreamReport, Version, label_tag
from rvq.wire.records import make_records

COUNT = 500
AT = Stamped(label_tag("work"), 1, 1, 1, 0.0, 0, 0)


def run(quick: bool) -> Iterator[Figure]:
    objects = [{"job": number, "name": "resize"} for number in range(COUNT)]
    raw = [bytes(64) for _ in range(COUNT)]
    plain = ns_per_call(lambda: [msgpack.packb(body) for body in objects], quick) / COUNT
    yield Figure("msgpack alone packs an object", plain, "ns")
    for name, bodies in (("object", objects), ("64 bytes", raw)):
        packing = ns_per_call(lambda bodies=bodies: make_records(bodies), quick) / COUNT
        records = make_records(bodies)
        framing = ns_per_call(lambda records=records: encode_batch(AT, records), quick) / COUNT
        frame = encode_batch(AT, records)
        reading = ns_per_call(lambda frame=frame: read_batch(frame).contents(range(COUNT)), quick) / COUNT
        yield Figure(f"{name}: pack", packing, "ns/message")
        yield Figure(f"{name}: put in a frame of {COUNT}", framing, "ns/message")
        yield Figure(f"{name}: read all of a frame", reading, "ns/message")
        yield Figure(f"{name}: bytes on the wire beyond its own", (len(frame) - sum(map(len, records.datas))) / COUNT)
    beat = _heartbeat()
    datagram = encode_control(beat, AT.label_tag)
    yield Figure("heartbeat: write", ns_per_call(lambda: encode_control(beat, AT.label_tag), quick) / 1000, "us")
    yield Figure("heartbeat: read", ns_per_call(lambda: decode_control(datagram), quick) / 1000, "us")


def _heartbeat() -> Alive:
    """Of a receiver of three streams that has work of each."""
    lanes = (LaneProgress(4, 1, 123_456, (123_460, 123_470)),)
    return Alive(
        1 << 60,
        "work",
        "default",
        1,
        1000,
        hello=False,
        leaving=False,
        load=0,
        version=Version(3, 1 << 60),
        heard=tuple(Heard(stream, counter=1000, stamp=4, silent=False, orphaned=False) for stream in range(3)),
        reports=tuple(StreamReport(stream, 10_000_000, 1 << 22, lanes) for stream in range(3)),
    )
