"""The columns of `format("rvq")`: their names, types, and which of them a reader is asked for. Owns no values."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rvq.errors import SparkError
from rvq.spark.options import MESSAGES, ReadOptions

HEADERS_TYPE: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))

MESSAGE_COLUMNS: Final[dict[str, DataType]] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": HEADERS_TYPE,
    "sender": LongType(),
    "sequence": LongType(),
    "kind": StringType(),
    "group": StringType(),
    "receiver": LongType(),
    "shard": IntegerType(),
    "heard": TimestampType(),
    "type": StringType(),
}
"""What a message is as a row. `headers` come by default only with includeHeaders; the last three only by name."""

HISTORY_COLUMNS: Final[dict[str, DataType]] = {
    "kind": StringType(),
    "topic": StringType(),
    "group": StringType(),
    "sender": LongType(),
    "receiver": LongType(),
    "timestamp": TimestampType(),
    "heard": TimestampType(),
    "first": LongType(),
    "last": LongType(),
    "step": IntegerType(),
    "count": IntegerType(),
    "stamp": LongType(),
    "slot": IntegerType(),
    "outcome": StringType(),
    "counter": LongType(),
    "sequences": BinaryType(),
    "shards": BinaryType(),
    "detail": StringType(),
    "recorder": LongType(),
}
"""What was said as a row: one for each frame of messages, each run of outcomes, and each word of control."""

_ONLY_BY_NAME: Final = {"shard", "heard", "type"}


def columns_of(options: ReadOptions) -> dict[str, DataType]:
    return MESSAGE_COLUMNS if options.rows == MESSAGES else HISTORY_COLUMNS


def default_schema(options: ReadOptions) -> StructType:
    """What a query has that does not ask for columns."""
    if options.rows != MESSAGES:
        return _schema(HISTORY_COLUMNS, HISTORY_COLUMNS)
    left_out = _ONLY_BY_NAME if options.include_headers else _ONLY_BY_NAME | {"headers"}
    return _schema(MESSAGE_COLUMNS, [name for name in MESSAGE_COLUMNS if name not in left_out])


def check_schema(schema: StructType, options: ReadOptions) -> StructType:
    """A user's schema says which columns are built. SparkError if one of them is not there, or of another type."""
    known = columns_of(options)
    for field in schema.fields:
        if field.name not in known:
            raise SparkError(f"no column is called {field.name!r}: there are {', '.join(known)}")
        if not _is_alike(field.dataType, known[field.name]):
            raise SparkError(
                f"column {field.name!r} is {known[field.name].simpleString()}, not {field.dataType.simpleString()}:"
                " ask for it as it is, and cast it afterwards"
            )
    return schema


def arrow_schema(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema, timezone="UTC")


def _is_alike(one: DataType, other: DataType) -> bool:
    return one.simpleString() == other.simpleString()


def _schema(types: dict[str, DataType], names: object) -> StructType:
    assert isinstance(names, (list, dict))
    return StructType([StructField(name, types[name]) for name in names])
