"""Counters and gauges of this process for Prometheus. Owns the collector, its names and the page that shows them.

What is counted is `core.stats`' catalogue: a counter that is added there appears here by itself. Needs the package
prometheus-client (`pip install rvq[metrics]`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from rvq.aio.receiver import Receiver
from rvq.aio.recorder import Recorder
from rvq.aio.sender import Sender
from rvq.core.receiver import ReceiverMachine
from rvq.core.stats import Counts, Stats
from rvq.errors import BadArgument, BusError, RvqError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

A = TypeVar("A")
T = TypeVar("T")
End = Sender | Receiver | Recorder

HOST = "127.0.0.1"
"""Where the page is unless a host is named: nobody else's business."""

LABELS = ("label", "group", "role", "id")
"""Of every metric: of a sender, `group` is empty."""

COUNTERS = tuple(field.name for field in fields(Stats) if field.type in (int, "int"))
PARTS = {"lane": "lanes", "shard": "shards"}
"""Counters by lane and by shard: a series for each, so only on demand."""

GAUGES: dict[str, str] = {
    "table_version": "Counter of the table in force; of a sender, by group.",
    "slots": "Slots of the table in force: a receiver's own; at a sender all, by group.",
    "members": "Members of the table in force; of a sender, by group.",
    "undone": "Sender: messages that are sent and not known to be done in every group.",
    "window_used_bytes": "Sender: bytes that are kept because they are not done.",
    "window_bytes": "Sender: how many it keeps at most; then send waits.",
    "backlog": "Receiver: messages in hand and in line.",
    "paused": "1 while the group is paused; of a sender, by group.",
    "leaving": "Receiver: 1 while it drains.",
}

TRIES = 20
"""The ends live in another thread: what changes under one's eyes is looked at again."""

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """One end at one moment. A sender has gauges of each group, too."""

    labels: Labels
    stats: Stats
    gauges: Sequence[tuple[Labels, dict[str, float]]]


class Collector:
    """Walks the catalogue of each end whenever it is asked. `parts`: also by lane and by shard."""

    def __init__(self, ends: Iterable[End], *, parts: bool = False) -> None:
        self._ends = tuple(ends)
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        looks = [look for end in self._ends for look in _steadily(_looks, end)]
        for counter in COUNTERS:
            counters = CounterMetricFamily(f"rvq_{counter}", f"{counter}: see docs/work.md, counters.", labels=LABELS)
            for look in looks:
                counters.add_metric(look.labels, getattr(look.stats, counter))
            yield counters
        for gauge, words in GAUGES.items():
            gauges = GaugeMetricFamily(f"rvq_{gauge}", words, labels=LABELS)
            for look in looks:
                for labels, values in look.gauges:
                    if gauge in values:
                        gauges.add_metric(labels, values[gauge])
            yield gauges
        for part, attribute in PARTS.items() if self._parts else ():
            for field in fields(Counts):
                name, words = f"rvq_{part}_{field.name}", f"{field.name}, by {part}."
                family = CounterMetricFamily(name, words, labels=(*LABELS, part))
                for look in looks:
                    parts: dict[int, Counts] = getattr(look.stats, attribute)
                    for number, counts in _steadily(dict.items, parts):
                        family.add_metric((*look.labels, str(number)), getattr(counts, field.name))
                yield family


def _looks(end: End) -> Iterator[Look]:
    """An end as it is now, if it is open; of a recorder, each of its labels."""
    id = f"{end.id:016x}"
    if isinstance(end, Sender):
        if (sender := end.machine) is not None:
            own = (end.label, "", "sender", id)
            groups = [((end.label, name, "sender", id), values) for name, values in sender.gauges_by_group.items()]
            yield Look(own, sender.stats, [(own, sender.gauges), *groups])
    elif isinstance(end, Receiver):
        if (receiver := end.machine) is not None:
            own = (end.label, end.group or "", "tap" if end.group is None else "receiver", id)
            gauges = [(own, receiver.gauges)] if isinstance(receiver, ReceiverMachine) else []
            yield Look(own, receiver.stats, gauges)
    else:
        for label, machine in end.machines.items():
            own = (label, end.group, "recorder", id)
            yield Look(own, machine.stats, [(own, machine.gauges)])


def _steadily(look: Callable[[A], Iterable[T]], at: A) -> list[T]:
    """A dict that grows while it is walked says so with RuntimeError."""
    for _ in range(TRIES):
        with suppress(RuntimeError):
            return list(look(at))
    return []


class Exporter:
    """A page of metrics that is being served. `close` ends it; so does leaving its block."""

    def __init__(self, address: tuple[str, int], close: Callable[[], None]) -> None:
        self.host, self.port = address
        self._close: Callable[[], None] | None = close

    def close(self) -> None:
        """Twice is fine."""
        close, self._close = self._close, None
        if close is not None:
            close()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def serve(port: int | str, *ends: End, parts: bool = False) -> Exporter:
    """Serve the counters and gauges of senders, receivers and recorders to Prometheus: http://127.0.0.1:PORT/metrics.

    port: a number, or "HOST:PORT" to serve on another address than loopback; 0 takes a free one.
    parts: also by lane and by shard, which is a series for each of them.
    The page is served by a thread; the ends need not be open yet.
    """
    address = parse_address(port)
    for end in ends:
        if not isinstance(end, End):
            raise BadArgument(f"{end!r:.60} has no metrics: give senders, receivers and recorders")
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise RvqError("metrics need the package prometheus-client: pip install 'rvq[metrics]'") from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collector(ends, parts=parts))
    host, number = address
    try:
        server, thread = start_http_server(number, host, registry)
    except OSError as error:
        raise BusError(
            f"metrics cannot be served on {host}:{number} ({error.strerror}): choose another port, or see who has it "
            f"(ss -ltnp 'sport = :{number}')"
        ) from error

    def close() -> None:
        with suppress(OSError):
            server.shutdown()
            server.server_close()
        thread.join(5.0)

    return Exporter((host, server.server_port), close)


def parse_address(port: Any) -> tuple[str, int]:
    """PORT, or HOST:PORT."""
    advice = "give a port from 0 to 65535, or HOST:PORT"
    if isinstance(port, int) and not isinstance(port, bool):
        host, number = HOST, port
    elif isinstance(port, str) and (found := re.fullmatch(r"(?:\[?([^\[\]]+)\]?:)?(\d{1,5})", port)):
        host, number = found[1] or HOST, int(found[2])
    else:
        raise BadArgument(f"port={port!r:.60} is not a port: {advice}")
    if not 0 <= number <= 65535:
        raise BadArgument(f"port={port!r:.60} is not a port: {advice}")
    return host, number
