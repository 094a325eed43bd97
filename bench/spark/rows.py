"""A journal of records of 200 bytes, read by Spark on `local[2]`: three columns, all, and Parquet in the same run.

Rates move with whatever else the machine does; ratios, and processor time for each row, move less. Readers take turns.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, Skipped
from rvq.journal import Entry, EntryKind, Journal
from rvq.wire.batch import Stamped, encode_batch
from rvq.wire.frames import label_tag
from rvq.wire.records import make_records

LABEL = "work"
BYTES = 200
PER_FRAME = 290
"""What fits a frame on loopback."""
FRAMES_PER_COMMIT = 16
THREE = "sender BIGINT, sequence BIGINT, value BINARY"
RATE_LEAST = 1.5
RATIO_LEAST = 0.5


def run(quick: bool) -> Iterator[Figure]:
    """Figures of one journal."""
    missing = [name for name in ("pyspark", "pyarrow", "numpy") if find_spec(name) is None]
    if missing or not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise Skipped(
            f"needs {', '.join(missing) or 'Java 17'}: pip install .[spark], apt install openjdk-17-jre-headless"
        )
    rows, turns = (60_000, 1) if quick else (2_000_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        yield from _measure(Path(folder), write(Path(folder) / "journal", rows), rows, turns)


def write(folder: Path, rows: int) -> Path:
    """As a recorder would."""
    journal = Journal.open(folder, group="journal", recorder=1)
    now = time.time()
    for number, first in enumerate(range(1, rows + 1, PER_FRAME)):
        many = min(PER_FRAME, rows + 1 - first)
        bodies = [b"%0200d" % n for n in range(first, first + many)]
        at = Stamped(label_tag(LABEL), 1, 7, first, now, 0, 0)
        datagram = encode_batch(at, make_records(bodies))
        journal.writer(LABEL).add(Entry(EntryKind.FRAME, 0, None, now, many, datagram))
        if number % FRAMES_PER_COMMIT == FRAMES_PER_COMMIT - 1:
            journal.commit(now, sync=False)
    journal.close(now)
    return folder


def _measure(folder: Path, journal: Path, rows: int, turns: int) -> Iterator[Figure]:
    from rvq.spark.session import make_session

    spark = make_session("local[2]", "bench")
    try:
        reader = spark.read.format("rvq")
        everything = reader.load(str(journal))
        everything.write.mode("overwrite").parquet(str(folder / "parquet"))
        parquet = spark.read.parquet(str(folder / "parquet"))
        nothing = spark.read.format("rvq").option("startingTimestamp", "2100-01-01T00:00:00Z").load(str(journal))
        readers: dict[str, Any] = {
            "three columns": spark.read.format("rvq").schema(THREE).load(str(journal)),
            "all columns": everything,
            "Parquet, all columns": parquet,
            "nothing (what a query costs by itself)": nothing,
        }
        seconds: dict[str, list[float]] = {name: [] for name in readers}
        cpu: dict[str, list[float]] = {name: [] for name in readers}
        for turn in range(turns + 1):
            for name, frame in readers.items():
                took, used = _timed(lambda frame=frame: frame.write.format("noop").mode("overwrite").save())
                if turn or turns == 1:  # the first one warms up
                    seconds[name].append(took)
                    cpu[name].append(used)
    finally:
        spark.stop()
    best = {name: rows / min(times) / 1e6 for name, times in seconds.items()}
    yield Figure("rows", rows)
    yield Figure("three columns", best["three columns"], "M rows/s", least=RATE_LEAST)
    yield Figure("all columns", best["all columns"], "M rows/s")
    yield Figure("Parquet, all columns", best["Parquet, all columns"], "M rows/s")
    ratios = [p / a for p, a in zip(seconds["Parquet, all columns"], seconds["all columns"], strict=True)]
    yield Figure("all columns, as part of Parquet", median(ratios), "", least=RATIO_LEAST)
    for name in ("three columns", "all columns", "Parquet, all columns"):
        yield Figure(f"processor time, {name}", min(cpu[name]) / rows * 1e6, "s/M rows")
    yield Figure("a query that reads nothing", min(seconds["nothing (what a query costs by itself)"]), "s")
    yield Figure("load of the machine", os.getloadavg()[0])


def _timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and processor seconds of this process and all below it, the living and the dead."""
    before, began = processor_seconds(), time.monotonic()
    work()
    return time.monotonic() - began, processor_seconds() - before


def processor_seconds() -> float:
    """Of this process and all that it started, and they."""
    facts: dict[int, tuple[int, float]] = {}
    tick = os.sysconf("SC_CLK_TCK")
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                words = (path / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue  # it has just ended
            facts[int(path.name)] = (int(words[1]), sum(map(int, words[11:15])) / tick)
    total, below = 0.0, {os.getpid()}
    while below:
        total += sum(facts[pid][1] for pid in below if pid in facts)
        below = {pid for pid, (parent, _) in facts.items() if parent in below}
    return total
