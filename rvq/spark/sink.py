"""The writing ends of `format("rvq")`: tasks hand their rows to the driver, and the driver sends them when all have.

Owns where it is kept what was sent. Rows of a batch pass through the driver's memory: bound them at the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from rvq.bus import Bus
from rvq.errors import SparkError
from rvq.names import check_label
from rvq.spark.outgoing import Outgoing, check_schema, pack_batches, unpack_messages
from rvq.spark.sending import send_batch
from rvq.spark.sent import Forgetful, SentFile

WRITE_OPTIONS: Final = (
    "topic",
    "window",
    "linger",
    "interface",
    "port",
    "address",
    "keyFile",
    "progress",
    "runId",
    "checkpointLocation",
)
WINDOW: Final = 10_000
"""Messages that are on their way at once: so many may be repeated if the driver is killed. Fewer are slower."""
LINGER_S: Final = 30.0
KEPT: Final = 10
"""Files of batches that are all done are removed but for so many: Spark takes up none but the last."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Where to send, and how."""

    topic: str | None
    window: int
    linger: float
    bus: dict[str, Any]
    progress: str | None
    run_id: str | None


def write_options(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """SparkError, in one sentence, for what cannot be."""
    given = {name.lower(): text for name, text in options.items()}
    known = {name.lower() for name in WRITE_OPTIONS} | {"path"}
    for name in given:
        if name not in known:
            raise SparkError(f"no option is called {name!r}: there are {', '.join(WRITE_OPTIONS)}")
    topic = given.get("topic")
    bus: dict[str, Any] = {name: given[name] for name in ("interface", "address") if name in given}
    if "keyfile" in given:
        bus["key"] = given["keyfile"]  # on whichever machine a task runs
    if "port" in given:
        bus["port"] = _number("port", given["port"])
    Bus.from_env(**bus)  # its own checks
    progress, run_id = given.get("progress"), given.get("runid")
    if streaming:
        progress, run_id = progress or _beside(given.get("checkpointlocation")), None
    elif (progress is None) != (run_id is None):
        raise SparkError("progress and runId belong together: a folder, and a name by which this run is taken up again")
    return WriteOptions(
        topic=None if topic is None else check_label(topic),
        window=_number("window", given.get("window", str(WINDOW))),
        linger=float(_number("linger", given.get("linger", f"{LINGER_S:.0f}"))),
        bus=bus,
        progress=progress,
        run_id=run_id,
    )


def _number(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise SparkError(f"{name}={text!r} is not a whole number from 1")
    return int(text)


def _beside(checkpoint: str | None) -> str | None:
    """In the checkpoint, if that is a folder that this process sees."""
    if checkpoint is None:
        return None
    url = urlparse(checkpoint)
    return f"{unquote(url.path)}/rvq-sink" if url.scheme in ("", "file") else None


@dataclass
class Computed(WriterCommitMessage):
    """The rows of one task."""

    partition: int
    rows: int
    data: bytes


class Writing:
    """What batches and streams have in common."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_schema(schema, options.topic)
        self._options = options

    def _compute(self, batches: Iterator[pa.RecordBatch]) -> Computed:
        data, rows = pack_batches(batches)
        context = TaskContext.get()
        return Computed(0 if context is None else context.partitionId(), rows, data)

    def _send(self, messages: Iterable[WriterCommitMessage | None], name: str | None) -> int:
        options = self._options
        computed = sorted((one for one in messages if isinstance(one, Computed)), key=lambda one: one.partition)
        if not sum(one.rows for one in computed):
            return 0
        sent: SentFile | Forgetful = Forgetful()
        if options.progress is not None and name is not None:
            sent = SentFile(Path(options.progress) / f"{name}.sent")
        rows: Iterator[Outgoing] = (row for one in computed for row in unpack_messages(one.data))
        try:
            return send_batch(
                rows,
                sent,
                topic=options.topic,
                bus=Bus.from_env(**options.bus),
                window=options.window,
                linger=options.linger,
            )
        finally:
            sent.close()


class BatchWriter(Writing, DataSourceArrowWriter):
    """`df.write`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._compute(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._send(messages, self._options.run_id)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Nothing was sent."""


class StreamWriter(Writing, DataSourceStreamArrowWriter):
    """`df.writeStream`."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._compute(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self._send(messages, f"{batchId:012}")
        self._remove_old(batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Nothing was sent."""

    def _remove_old(self, batch: int) -> None:
        if self._options.progress is not None:
            for path in Path(self._options.progress).glob("????????????.sent"):
                if path.stem.isdecimal() and int(path.stem) <= batch - KEPT:
                    path.unlink(missing_ok=True)
