"""The reading ends of `format("rvq")`: a batch, and a stream. Owns when offsets are taken; what they are is `offsets`'.

Spark asks for offsets and tasks in one process beside its driver, and reads in others, on copies of these: so nothing
that `read` needs may change after the start.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from math import inf

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from rvq.errors import SparkError
from rvq.journal import JournalReader
from rvq.spark import offsets as o
from rvq.spark.chains import Chains, Slice
from rvq.spark.history import read_history
from rvq.spark.live import LiveRecorder
from rvq.spark.offsets import Json, Offsets, order
from rvq.spark.options import LATEST, MESSAGES, ReadOptions
from rvq.spark.portions import next_end, tasks
from rvq.spark.rows import read_rows
from rvq.spark.spent import expire_read


class Task(InputPartition):
    """What one task reads."""

    def __init__(self, slices: tuple[Slice, ...]) -> None:
        super().__init__(slices)
        self.slices = slices


class Reading:
    """What batches and streams have in common."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def _journal(self) -> JournalReader:
        return JournalReader(self._options.path, check=self._options.checksums)

    def _chains(self, journal: JournalReader) -> Chains:
        return Chains(journal, fail_on_data_loss=self._options.fail_on_data_loss)

    def _read(self, task: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(task, Task)
        journal = self._journal()
        read = read_rows if self._options.rows == MESSAGES else read_history
        for one in task.slices:
            yield from read(journal, self._options, one, self._schema)


class BatchReader(Reading, DataSourceReader):
    """`spark.read`."""

    def partitions(self) -> Sequence[InputPartition]:
        journal, options = self._journal(), self._options
        start = o.starting(journal, options)
        end = o.resolve(journal, options, options.ending)
        # Offsets say exactly what is meant; else what a recorder begins while this is planned is read from its start.
        found = tasks(self._chains(journal), start, end, options.min_partitions, to_head=options.starting != LATEST)
        return [Task(slices) for slices in found] or [Task(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)


class StreamReader(Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """`spark.readStream`."""

    def __init__(self, options: ReadOptions, schema: pa.Schema) -> None:
        super().__init__(options, schema)
        self._target: Offsets | None = None
        self._live: LiveRecorder | None = None

    def _recording(self) -> None:
        """With a bus: record it, from the first call on. Spark makes readers that it never calls, so not before."""
        if self._options.live is None:
            return
        if self._live is None:
            live = LiveRecorder(self._options.live, self._options.path)
            live.start()
            self._live = live
        self._live.check()

    def initialOffset(self) -> Json:
        """Not concrete yet: Spark asks twice, and must get the same."""
        self._recording()
        return {o.AT: "start"}

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.max_rows is not None:
            return ReadMaxRows(self._options.max_rows)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        if self._options.live is not None:
            raise SparkError(
                "a bus has no end to run to: leave out trigger(availableNow=True), or record it with `rvq record` and"
                " read that folder"
            )
        self._target = o.tail(self._journal(), self._options)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        self._recording()
        journal = self._journal()
        if isinstance(start.get(o.AT), str):  # not a label that is called so: those have dicts
            return o.as_json(o.starting(journal, self._options))
        begin = o.from_json(start)
        end = begin | self._ahead(begin, o.tail(journal, self._options) if self._target is None else self._target)
        if end == begin:
            return start
        max_rows: float = inf
        max_bytes: float = inf
        if not isinstance(limit, ReadAllAvailable):
            max_rows, max_bytes = self._options.max_rows or inf, self._options.max_bytes or inf
        moved = {chain: at for chain, at in end.items() if begin.get(chain) != at}
        return o.as_json(end | next_end(journal, self._chains(journal), begin, moved, max_rows, max_bytes))

    def _ahead(self, begin: Offsets, end: Offsets) -> Offsets:
        """Where there is more. What has been read and is not there any more is a loss, or another journal."""
        found = {}
        for chain, at in end.items():
            if chain not in begin or order(at) > order(begin[chain]):
                found[chain] = at
            elif order(at) < order(begin[chain]) and self._target is None and self._options.fail_on_data_loss:
                raise SparkError(
                    f"{chain[0]!r} ends at byte {at.position:,} of {at.segment}, before what was read: the journal was"
                    " replaced, or lost what was synced; start with a new checkpoint, or set failOnDataLoss=false"
                )
        return found

    def reportLatestOffset(self) -> Json:
        self._recording()
        return o.as_json(o.tail(self._journal(), self._options))

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        self._recording()
        if isinstance(start.get(o.AT), str):
            return []
        begin, until = o.from_json(start), o.from_json(end)
        moved = {chain: at for chain, at in until.items() if begin.get(chain) != at}
        found = tasks(self._chains(self._journal()), begin, moved, self._options.min_partitions)
        return [Task(slices) for slices in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition)

    def commit(self, end: Json) -> None:
        """Everything before this is the query's for good: it is not asked for again."""
        live = self._options.live
        if live is not None and live.keep is not None and not isinstance(end.get(o.AT), str):
            expire_read(self._journal(), o.from_json(end), live.keep, time.time())

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()
