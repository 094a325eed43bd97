"""The audit: what was lost, what was done twice, and by whom. Owns the verdicts, from the journal alone.

It trusts no report of success: a message counts as done because the receiver that handled it said so, or because its
sender's heartbeat did. What nobody can know, since words of a receiver are missing, is said to be unknown, not lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from rvq.spark import history as h
from rvq.spark.fates import Bucket, Fate, Run, Sent, runs_of
from rvq.spark.streams import Known, Stream, each_bucket, known_streams, read_history

OPEN_S: Final = 60.0
"""What is not done of a stream that was heard this shortly before the journal's end may yet be."""

FINDINGS_MAX: Final = 1000
"""Runs of each kind that are told of one bucket and group. All are counted."""

RECORDED: Final = "recorded"
UNRECORDED: Final = "unrecorded"
STORED_TWICE: Final = "stored twice"
DONE: Final = "done"
UNTOLD: Final = "untold"
"""Done by the sender's word, by a receiver whose word of it is not in the journal."""
TWICE: Final = "done twice"
UNDONE: Final = "undone"

_SCHEMA: Final = (
    "topic STRING, sender BIGINT, `group` STRING, what STRING, first BIGINT, last BIGINT, count BIGINT,"
    " receivers STRING"
)

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """Messages of one stream of which something is to be said. `verdict`: lost, open, unknown, done twice, ..."""

    label: str
    group: str
    sender: int
    first: int
    last: int
    count: int
    verdict: str
    receivers: tuple[int, ...] = ()

    def __str__(self) -> str:
        which = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last} ({self.count} messages)"
        who = " by " + " and ".join(f"{id:016x}" for id in self.receivers) if self.receivers else ""
        where = f"group {self.group}, " if self.group else ""
        return f"{self.verdict}{who}: {self.label}, {where}sender {self.sender:016x}, {which}"


@dataclass(slots=True)
class Audit:
    """What was found."""

    counts: Counter[str] = field(default_factory=Counter)
    """Messages, in all groups: recorded, done, lost, done twice, open, unknown, untold, unrecorded, stored twice."""
    findings: list[Finding] = field(default_factory=list)
    gaps: dict[int, int] = field(default_factory=dict)
    """Words that are missing of each receiver that has such."""
    by_group: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        return not self.counts["lost"] and not self.counts[TWICE] and not self.counts[UNRECORDED]

    def summary(self) -> str:
        names = [RECORDED, DONE, "lost", TWICE, "open", "unknown", UNTOLD, UNRECORDED, STORED_TWICE]
        shown = [name for name in names if self.counts[name] or name in (RECORDED, DONE, "lost", TWICE)]
        return ", ".join(f"{name} {self.counts[name]}" for name in shown)


def audit(
    spark: SparkSession, path: str, *, progress: Progress = lambda words: None, open_s: float = OPEN_S, **options: str
) -> Audit:
    """Looks at a whole journal, or at the labels and times that the reader's options name."""
    history = read_history(spark, path, **options)
    progress("reading what was said")
    known = known_streams(spark, path, history, **options)
    gaps = missing_words(history)
    progress(f"{len(known)} streams; looking at each message")
    rows = each_bucket(history, known, partial(judge, known), _SCHEMA).collect()
    newest = max((stream.heard for stream in known.values()), default=0.0)
    found = Audit(gaps={receiver: missing for receiver, missing in gaps.items() if missing})
    for row in rows:
        verdict = row.what
        if verdict == UNDONE:
            verdict = _verdict(known[row.topic, row.sender], bool(found.gaps), newest - open_s)
        if row["first"] is None:
            found.counts[verdict] += row["count"]
            found.by_group.setdefault((row.topic, row.group), Counter())[verdict] += row["count"]
        else:
            receivers = tuple(int(id, 16) for id in row.receivers.split(",")) if row.receivers else ()
            found.findings.append(
                Finding(row.topic, row.group, row.sender, row["first"], row["last"], row["count"], verdict, receivers)
            )
    found.findings.sort(key=lambda one: (one.verdict, one.label, one.group, one.sender, one.first))
    return found


def _verdict(known: Known, has_gaps: bool, old: float) -> str:
    if not known.over and known.heard > old:
        return "open"
    return "unknown" if has_gaps else "lost"


def missing_words(history: DataFrame) -> dict[int, int]:
    """Receivers number what they tell recorders: how many words of each are not there."""
    told = history.where(f"kind = '{h.HANDLED}'").select("receiver", "counter").distinct()
    counters = told.groupBy("receiver").agg(
        f.expr("max(counter) - min(counter) + 1").alias("should"), f.expr("count(counter)").alias("many")
    )
    return {row.receiver: row.should - row.many for row in counters.collect()}


def judge(
    streams: dict[Stream, Known], stream: Stream, number: int, sent: list[Sent], runs: list[Run]
) -> Iterable[tuple[Any, ...]]:
    """One bucket: counts (without first and last), and runs of what is not as it should be."""
    known = streams.get(stream, Known())
    bucket = Bucket(number)
    for one in sent:
        bucket.add(one)
    recorded = bucket.recorded > 0
    yield (*stream, "", RECORDED, None, None, int(recorded.sum()), None)
    yield from _findings(stream, "", STORED_TWICE, bucket.recorded > 1, bucket)
    yield from _findings(stream, "", UNRECORDED, _should_be(bucket, known) & ~recorded, bucket)
    sequences = bucket.sequences
    for group, segments in known.segments.items():
        mine = [run for run in runs if run.group == group]
        fate = Fate(bucket, segments)
        for run in mine:
            fate.add(run)
        owed = recorded & segments.expected(sequences)
        by_word = sequences <= known.done_to.get(group, 0)
        settled = fate.settled > 0
        yield (*stream, group, DONE, None, None, int((owed & (settled | by_word)).sum()), None)
        yield from _findings(stream, group, UNTOLD, owed & by_word & ~settled, bucket, told=False)
        yield from _findings(stream, group, UNDONE, owed & ~by_word & ~settled, bucket)
        yield from _findings(stream, group, TWICE, fate.acked > 1, bucket, fate)


def _should_be(bucket: Bucket, known: Known) -> np.ndarray[Any, np.dtype[Any]]:
    """What the recorders had to store: where their group was stamped, up to the stream's end."""
    sequences = bucket.sequences
    found = np.asarray((sequences >= known.first) & (sequences <= known.last))
    return found if known.recorders is None else found & known.recorders.expected(sequences)


def _findings(
    stream: Stream, group: str, what: str, mask: Any, bucket: Bucket, fate: Fate | None = None, *, told: bool = True
) -> Iterable[tuple[Any, ...]]:
    count = int(mask.sum())
    if not count:
        return
    yield (*stream, group, what, None, None, count, None)
    if told:
        for first, last in runs_of(mask, bucket.base)[:FINDINGS_MAX]:
            who = "" if fate is None else ",".join(f"{id:016x}" for id in fate.doers(first, last))
            yield (*stream, group, what, first, last, last - first + 1, who)
