"""What a soak cost: how long takeovers took, how long messages waited, what everyone had in memory. Judges nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.soak.chaos import Sample, Span
from bench.soak.schedule import AUDIT, HOSTS, LEDGER, Kind
from bench.soak.story import Story, by_message

TAKEN_OVER_S_MAX = 20.0
"""What comes later is another fault's doing."""
GONE_S = 1.3
"""A stop or a cut that is shorter makes nobody take over."""

Points = list[tuple[float, float]]


@dataclass
class Measured:
    """Times are seconds since the beginning."""

    takeovers: dict[str, list[float]] = field(default_factory=dict)
    """By kind of fault: from its beginning until another started the first of what it inherited."""
    waits: dict[str, Points] = field(default_factory=dict)
    """By group: the longest wait, from sending to the first start, of what was sent in each second."""
    rates: dict[str, Points] = field(default_factory=dict)
    """By group: handled to the end in each second."""
    memory: dict[str, Points] = field(default_factory=dict)
    """By host: megabytes."""


def measure(story: Story, samples: Iterable[Sample], began_at: float) -> Measured:
    measured = Measured(takeovers(story))
    sent = {(stream.id, write.sequence): write for stream in story.streams.values() for write in stream.writes}
    waits: dict[str, dict[int, float]] = defaultdict(dict)
    rates: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (group, id), handlings in by_message(story.handlings).items():
        write = sent.get(id)
        if write is not None and write.delay_s is None and write.at >= began_at:
            second = int(write.at - began_at)
            waits[group][second] = max(waits[group].get(second, 0.0), handlings[0].start - write.at)
        for handling in handlings:
            if handling.outcome == "finish" and handling.finish is not None and handling.finish >= began_at:
                rates[group][int(handling.finish - began_at)] += 1
    for group in (LEDGER, AUDIT):
        measured.waits[group] = [(float(at), value) for at, value in sorted(waits[group].items())]
        measured.rates[group] = every_second(rates[group])
    for sample in samples:
        points = measured.memory.setdefault(sample.host, [])
        points.append((round(sample.at - began_at, 1), sample.rss_bytes / 1e6))
    measured.memory = {host: measured.memory[host] for host in HOSTS if host in measured.memory}
    return measured


def every_second(values: dict[int, float]) -> Points:
    """Also those in which there was nothing."""
    if not values:
        return []
    return [(float(second), values.get(second, 0.0)) for second in range(min(values), max(values) + 1)]


def takeovers(story: Story) -> dict[str, list[float]]:
    """How long after a receiver was gone another one started the first message that it had inherited."""
    inherited: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for handling in sorted(story.handlings, key=lambda handling: handling.start):
        if handling.inherited:
            inherited[handling.group].append((handling.start, handling.host))
    found: dict[str, list[float]] = {}
    for span in story.spans:
        if not _is_gone(span):
            continue
        first = next((at for at, host in inherited[HOSTS[span.host]] if at > span.since and host != span.host), None)
        if first is not None and first - span.since < TAKEN_OVER_S_MAX:
            found.setdefault(span.kind.value, []).append(first - span.since)
    return found


def _is_gone(span: Span) -> bool:
    if HOSTS.get(span.host) not in (LEDGER, AUDIT):
        return False
    if span.kind is Kind.KILL:
        return True
    return span.kind in (Kind.STOP, Kind.PULL, Kind.DEAF, Kind.MUTE) and span.to - span.since > GONE_S


def summary(values: Sequence[float]) -> dict[str, float]:
    """Least, middle and most."""
    return {
        "times": len(values),
        "least_s": round(min(values), 2),
        "median_s": round(median(values), 2),
        "most_s": round(max(values), 2),
    }
