"""Rows become messages by their types; those that cannot are refused in one sentence."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from rvq.errors import SparkError
from rvq.spark.outgoing import check_schema, pack_batches, unpack_messages


def schema(text: str) -> StructType:
    """Parsed by Spark's own parser, so there must be a session."""
    return StructType.fromDDL(text)


@pytest.mark.parametrize(
    "columns",
    [
        "value STRING, key BINARY, topic STRING, id STRING, headers MAP<STRING, STRING>",
        "value STRUCT<a: INT, b: MAP<STRING, ARRAY<DOUBLE>>>, headers ARRAY<STRUCT<key: STRING, value: BINARY>>",
        "value BINARY",
        "value BOOLEAN",
        "value BIGINT",
    ],
)
def test_these_can_be_sent(spark: object, columns: str) -> None:
    check_schema(schema(columns), "work")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("key STRING", "no column is called 'value'"),
        ("value STRING, price INT", "column 'price' cannot be sent: select value"),
        ("value STRING, key INT", "column 'key' is int, and must be string or binary: cast it"),
        ("value STRING, topic BINARY", "column 'topic' is binary, and must be string"),
        ("value STRING, id INT", "column 'id' is int, and must be string"),
        ("value STRING, headers STRING", "column 'headers' is string, and must be map"),
        ("value STRUCT<a: INT, t: ARRAY<TIMESTAMP>>", "column 'value' has timestamp, which no message can have"),
        ("value DECIMAL(10,2)", "column 'value' has decimal"),
    ],
)
def test_these_cannot(spark: object, columns: str, words: str) -> None:
    with pytest.raises(SparkError, match=words.replace("(", r"\(")):
        check_schema(schema(columns), "work")


def test_without_a_label_nothing_can_be_sent(spark: object) -> None:
    with pytest.raises(SparkError, match="no label to send to"):
        check_schema(schema("value STRING"), None)
    check_schema(schema("value STRING, topic STRING"), None)


def test_text_stays_text_bytes_stay_bytes_and_the_rest_are_objects() -> None:
    struct = pa.struct([("n", pa.int32()), ("m", pa.map_(pa.string(), pa.float64()))])
    values = [
        (pa.array(["täxt"]), "täxt"),
        (pa.array([b"\xff"]), b"\xff"),
        (pa.array([{"n": 1, "m": [("a", 2.5)]}], struct), {"n": 1, "m": {"a": 2.5}}),
        (pa.array([[1, 2]]), [1, 2]),
        (pa.array([None], pa.string()), None),
    ]
    for column, body in values:
        data, rows = pack_batches([pa.record_batch({"value": column})])
        (message,) = unpack_messages(data)
        assert (message.body, message.key, message.headers, rows) == (body, None, None, 1)


def test_keys_labels_headers_and_ids_go_along() -> None:
    headers = pa.array([[{"key": "trace", "value": b"a1"}], None])
    columns = {"value": ["a", "b"], "key": ["k", None], "topic": ["x", "y"], "headers": headers, "id": ["i", None]}
    data, _ = pack_batches([pa.record_batch({n: c if n == "headers" else pa.array(c) for n, c in columns.items()})])
    first, second = unpack_messages(data)
    assert first[:4] == ("a", "k", "x", {"trace": b"a1", "id": "i"})
    assert second[:4] == ("b", None, "y", None)


def test_a_message_is_known_again_by_all_that_it_has_or_by_its_id() -> None:
    def digests(**columns: list[str]) -> list[int]:
        data, _ = pack_batches([pa.record_batch({name: pa.array(column) for name, column in columns.items()})])
        return [message.digest for message in unpack_messages(data)]

    assert digests(value=["a", "b"]) == digests(value=["b", "a"])[::-1]
    assert len(set(digests(value=["a", "a", "b"], key=["k", "l", "k"]))) == 3
    assert digests(value=["a"], id=["7"]) == digests(value=["b"], id=["7"])


def test_a_task_without_rows_has_nothing_to_say() -> None:
    data, rows = pack_batches([])
    assert (list(unpack_messages(data)), rows) == ([], 0)
