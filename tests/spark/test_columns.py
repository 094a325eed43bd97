"""A query has the columns that it asks for, and is told when there are none such."""

from __future__ import annotations

import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from rvq.errors import SparkError
from rvq.spark.columns import HISTORY_COLUMNS, arrow_schema, check_schema, default_schema
from rvq.spark.options import ReadOptions, read_options


def options(**more: str) -> ReadOptions:
    return read_options({"path": "/j"} | more, streaming=False)


def test_the_columns_of_a_message_are_those_of_kafka_and_its_own() -> None:
    kafka = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    own = ["sender", "sequence", "kind", "group", "receiver"]
    assert default_schema(options()).names == kafka + own
    assert default_schema(options(includeHeaders="true")).names == [*kafka, "headers", *own]
    assert default_schema(options(rows="history")).names == list(HISTORY_COLUMNS)


def test_a_schema_may_ask_for_some_of_them() -> None:
    some = StructType([StructField("sequence", LongType()), StructField("shard", IntegerType())])
    assert check_schema(some, options()) == some
    assert arrow_schema(some).names == ["sequence", "shard"]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (StructField("body", StringType()), "no column is called 'body': there are key, value"),
        (StructField("sequence", StringType()), "column 'sequence' is bigint, not string"),
    ],
)
def test_what_is_not_there_cannot_be_asked_for(field: StructField, words: str) -> None:
    with pytest.raises(SparkError, match=words):
        check_schema(StructType([field]), options())
