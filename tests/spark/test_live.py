"""A bus that is recorded for a query, as Spark asks for it but without Spark: one line, and no other process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rvq
from rvq.errors import SparkError
from rvq.journal import JournalReader, verify
from rvq.spark.columns import arrow_schema, default_schema
from rvq.spark.live import LiveRecorder
from rvq.spark.options import read_options
from rvq.spark.reader import StreamReader
from tests.spark.conftest import environment
from tests.spark.talking import Talking
from tests.spark.test_reader import values_of

PATIENCE_S = 20.0


def reader_of(bus: rvq.Bus, checkpoint: Path, **more: str) -> StreamReader:
    options = {"bus": "lo", "port": str(bus.port), "subscribe": "work", "checkpointLocation": str(checkpoint)}
    options |= {name.lower() if name == "BUS" else name: text for name, text in more.items()}
    found = read_options(options, streaming=True)
    return StreamReader(found, arrow_schema(default_schema(found)))


class Following:
    """What Spark does, trigger after trigger; the offset of the last batch outlives the reader."""

    def __init__(self) -> None:
        self.at: dict[str, Any] | None = None
        self.values: list[bytes] = []

    @contextmanager
    def query(self, reader: StreamReader) -> Iterator[StreamReader]:
        if self.at is None:
            self.at = reader.initialOffset()
        try:
            yield reader
        finally:
            reader.stop()

    def trigger(self, reader: StreamReader) -> None:
        assert self.at is not None
        end = reader.latestOffset(self.at, reader.getDefaultReadLimit())
        if end != self.at:
            self.values += values_of(reader, reader.partitions(self.at, end))
            reader.commit(self.at)
            self.at = end

    def until(self, reader: StreamReader, count: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while len(self.values) < count:
            assert time.monotonic() < end, f"{len(self.values)} of {count}"
            self.trigger(reader)


def test_a_query_that_stops_and_is_started_again_has_each_message_once(bus: rvq.Bus, tmp_path: Path) -> None:
    following = Following()
    with Talking(bus) as talking:
        for turn in range(1, 4):
            with following.query(reader_of(bus, tmp_path)) as reader:
                following.until(reader, 100 * turn)
        with following.query(reader_of(bus, tmp_path)) as reader:
            following.trigger(reader)
            bodies = talking.finish(PATIENCE_S)
            following.until(reader, len(bodies))
            following.trigger(reader)
    assert Counter(following.values) == Counter(body.encode() for body in bodies)
    assert verify(tmp_path / "rvq-source").findings == [], "sealed each time"


def test_a_reader_that_is_never_asked_records_nothing(bus: rvq.Bus, tmp_path: Path) -> None:
    reader_of(bus, tmp_path).stop()
    assert not list(tmp_path.iterdir())


def test_it_says_what_keeps_it_from_recording(bus: rvq.Bus, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"cannot be recorded: .*nowhere0"):
        reader_of(bus, tmp_path, BUS="nowhere0").initialOffset()
    other = tmp_path / "other"
    first = reader_of(bus, tmp_path, path=str(other), group="one")
    first.initialOffset()
    first.stop()
    with pytest.raises(SparkError, match="a journal of the group one, not two"):
        reader_of(bus, tmp_path, path=str(other), group="two").initialOffset()


def test_a_folder_that_is_a_journal_keeps_its_group(bus: rvq.Bus, tmp_path: Path) -> None:
    for more in ({"group": "one"}, {}):
        reader = reader_of(bus, tmp_path, **more)
        reader.initialOffset()
        reader.stop()
    assert JournalReader(tmp_path / "rvq-source").group == "one"


def test_a_recording_that_ended_by_itself_ends_the_query(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def breaks(_: rvq.Recorder) -> None:
        raise rvq.JournalError(tmp_path, "the disk is gone")

    monkeypatch.setattr(rvq.Recorder, "wait", breaks)
    reader = reader_of(bus, tmp_path)
    reader.initialOffset()
    assert reader._live is not None
    reader._live._thread.join(PATIENCE_S)
    with pytest.raises(SparkError, match=r"not recorded any more: .*the disk is gone"):
        reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    reader.stop()


def test_a_bus_has_no_end_to_run_to(bus: rvq.Bus, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no end to run to"):
        reader_of(bus, tmp_path).prepareForTriggerAvailableNow()


ENDED = """
import sys
from rvq.spark.bus import live_options
from rvq.spark.live import LiveRecorder
given = {"bus": "lo", "port": sys.argv[1], "path": sys.argv[2], "subscribe": "work"}
recorder = LiveRecorder(live_options(given, ("work",), streaming=True), sys.argv[2])
try:
    recorder.start()
    print("records", flush=True)
    sys.stdin.read()
finally:
    recorder.stop()
    print("left", flush=True)
"""


def test_the_process_that_spark_ends_leaves_in_good_order(bus: rvq.Bus, tmp_path: Path) -> None:
    command = (sys.executable, "-c", ENDED, str(bus.port), str(tmp_path))
    with (
        Talking(bus) as talking,
        subprocess.Popen(
            command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None and process.stdout.readline() == "records\n"
            talking.wait_for_done(50, PATIENCE_S)
            os.kill(process.pid, signal.SIGTERM)
            assert process.communicate(timeout=PATIENCE_S)[0] == "left\n"
        finally:
            process.kill()
        assert process.returncode == 0
    assert verify(tmp_path).findings == []


def test_stopping_what_never_began_is_fine(tmp_path: Path) -> None:
    live = read_options({"bus": "lo", "subscribe": "work", "path": str(tmp_path)}, streaming=True).live
    assert live is not None
    LiveRecorder(live, str(tmp_path)).stop()
