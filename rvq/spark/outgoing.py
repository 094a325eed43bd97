"""Rows -> messages: which columns may be sent, and what becomes of their types. Owns the words for those that may not.

`value` as text is sent as text, binary as bytes, everything else as an object; the other columns are optional. With a
column `type`, as the source has it, bodies become again what they were. Rows come as Arrow, from Spark.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgpack
import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
)

from rvq.errors import SparkError
from rvq.spark.plain import JSON, TEXT

COLUMNS: Final = ("value", "key", "topic", "headers", "id", "type")
_TEXT: Final = (StringType,)
ID_HEADER: Final = "id"
"""The header that carries the column `id`."""
AGAIN_HEADER: Final = "again"
"""On messages that may have been sent before: when the driver was killed, they were on their way."""


class Outgoing(NamedTuple):
    """One message to be sent."""

    body: Any
    key: str | bytes | None
    topic: str | None
    headers: dict[str, Any] | None
    digest: int
    """Of all that it has: what was sent is known again by it, whatever the order of rows."""


def check_schema(schema: StructType, topic: str | None) -> None:
    """SparkError, in one sentence, if these columns cannot be sent."""
    names = {field.name: field.dataType for field in schema.fields}
    for name in names:
        if name not in COLUMNS:
            raise SparkError(f"column {name!r} cannot be sent: select value, and others of {', '.join(COLUMNS)}")
    if "value" not in names:
        raise SparkError("no column is called 'value': name what is to be sent so, with selectExpr('… AS value')")
    if "topic" not in names and not topic:
        raise SparkError("no label to send to: give .option('topic', label), or a column 'topic'")
    for name, kinds in (("key", (StringType, BinaryType)), ("topic", _TEXT), ("id", _TEXT), ("type", _TEXT)):
        if name in names and not isinstance(names[name], kinds):
            words = " or ".join(kind().simpleString() for kind in kinds)
            raise SparkError(f"column {name!r} is {names[name].simpleString()}, and must be {words}: cast it")
    if "headers" in names and not _are_headers(names["headers"]):
        raise SparkError(
            f"column 'headers' is {names['headers'].simpleString()}, and must be map<string,string> or"
            " array<struct<key:string,value:binary>>"
        )
    bad = _unsendable(names["value"])
    if bad is not None:
        raise SparkError(
            f"column 'value' has {bad.simpleString()}, which no message can have: cast that, say to string"
        )


def _are_headers(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, (StringType, BinaryType))
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    types = {field.name: field.dataType for field in kind.elementType.fields}
    return types.keys() == {"key", "value"} and isinstance(types["key"], StringType)


def _unsendable(kind: DataType) -> DataType | None:
    """What in a type msgpack has not; None if it takes all of it."""
    if isinstance(kind, StructType):
        return next((bad for field in kind.fields if (bad := _unsendable(field.dataType)) is not None), None)
    if isinstance(kind, ArrayType):
        return _unsendable(kind.elementType)
    if isinstance(kind, MapType):
        return _unsendable(kind.keyType) or _unsendable(kind.valueType)
    plain = isinstance(kind, (StringType, BinaryType, BooleanType, NullType, NumericType))
    return None if plain and not isinstance(kind, DecimalType) else kind


def pack_batches(batches: Iterable[pa.RecordBatch]) -> tuple[bytes, int]:
    """What one task has, as bytes for the driver, and how many rows."""
    sink, rows, writer = io.BytesIO(), 0, None
    for batch in batches:
        if writer is None:
            options = pa.ipc.IpcWriteOptions(compression="zstd") if pa.Codec.is_available("zstd") else None
            writer = pa.ipc.new_stream(sink, batch.schema, options=options)
        writer.write_batch(batch)
        rows += batch.num_rows
    if writer is not None:
        writer.close()
    return sink.getvalue(), rows


def unpack_messages(data: bytes) -> Iterator[Outgoing]:
    """The messages of one task, in their order."""
    if not data:
        return
    for batch in pa.ipc.open_stream(data):
        columns = {name: batch.column(name) for name in batch.schema.names}
        value = columns["value"]
        bodies = _objects(value)
        if "type" in columns:
            bodies = [_as_was(body, kind) for body, kind in zip(bodies, columns["type"].to_pylist(), strict=True)]
        count = batch.num_rows
        keys = columns["key"].to_pylist() if "key" in columns else [None] * count
        topics = columns["topic"].to_pylist() if "topic" in columns else [None] * count
        headers = columns["headers"].to_pylist() if "headers" in columns else [None] * count
        ids = columns["id"].to_pylist() if "id" in columns else [None] * count
        for body, key, topic, some, id in zip(bodies, keys, topics, headers, ids, strict=True):
            named = _as_dict(some)
            if id is not None:
                named = (named or {}) | {ID_HEADER: id}
            yield Outgoing(body, key or None, topic, named, _digest(body, key, topic, named, id))


def _objects(value: pa.Array) -> list[Any]:
    """As Python has them: maps are pairs in Arrow, and become dicts."""
    found: list[Any] = value.to_pylist(maps_as_pydicts="strict") if _has_maps(value.type) else value.to_pylist()
    return found


def _as_was(body: Any, kind: str | None) -> Any:
    """A body of the source, as it was sent."""
    if isinstance(body, bytes) and kind == TEXT:
        return body.decode()
    return json.loads(body) if isinstance(body, (bytes, str)) and kind == JSON else body


def _has_maps(kind: pa.DataType) -> bool:
    return "map<" in str(kind)


def _as_dict(headers: Any) -> dict[str, Any] | None:
    if not headers:
        return None
    pairs = ((one["key"], one["value"]) if isinstance(one, dict) else one for one in headers)
    return {name: value for name, value in pairs if name is not None}


def _digest(body: Any, key: Any, topic: Any, headers: Any, id: str | None) -> int:
    said: Any = (id, topic) if id is not None else (body, key, topic, headers)
    return int.from_bytes(blake2b(msgpack.packb(said), digest_size=8, person=b"rvq spark").digest(), "little")
