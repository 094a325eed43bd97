"""Bodies, keys and headers as Arrow has them are those that were sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from rvq.spark import values  # noqa: E402
from rvq.spark.blocks import read_messages  # noqa: E402
from rvq.spark.plain import as_bytes  # noqa: E402
from rvq.spark.values import Values  # noqa: E402
from rvq.wire.records import Records, make_record, make_records, read_record  # noqa: E402
from tests.spark.test_blocks import block_of  # noqa: E402
from tests.spark.writing import entry_of, frame  # noqa: E402
from tests.wire.samples import record_lists, shortly  # noqa: E402


def values_of(records: Records) -> Values:
    return Values(read_messages([block_of([entry_of(frame(records, 1))])]))


@shortly
@given(record_lists)
def test_what_was_sent_is_in_the_columns(records: list[Any]) -> None:
    found = values_of(Records.of(records))
    contents = [read_record(record.kind, record.data) for record in records]
    assert found.bodies().to_pylist() == [as_bytes(content.body) for content in contents]
    assert found.keys().to_pylist() == [None if c.key is None else as_bytes(c.key) for c in contents]
    headers = [[(h["key"], h["value"]) for h in some] if some else None for some in found.headers().to_pylist()]
    assert headers == [[(n, as_bytes(v)) for n, v in c.headers.items()] if c.headers else None for c in contents]


@shortly
@given(st.lists(st.text(st.characters(codec="utf-8")) | st.binary(max_size=300), min_size=1, max_size=20))
def test_bytes_and_text_of_any_length_are(bodies: list[Any]) -> None:
    assert values_of(make_records(bodies)).bodies().to_pylist() == [as_bytes(body) for body in bodies]


@pytest.mark.parametrize("size", [0, 1, 31, 32, 255, 256, 9000])
def test_text_is_never_unpacked_one_by_one(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(values, "read_or_none", None)
    assert values_of(make_records(["é" + "x" * size] * 3)).bodies().to_pylist() == [("é" + "x" * size).encode()] * 3


def test_bytes_are_taken_where_they_lie() -> None:
    bodies = values_of(make_records([b"abc", b"def"])).bodies()
    assert bodies.to_pylist() == [b"abc", b"def"]
    assert bodies.buffers()[2].size > 56, "the frame itself, and not a copy"


@pytest.mark.parametrize("data", [b"\xc1", b"\xa1ab", b"\xa3ab", b"\xd9\x01ab", b"\xdb\0\0\0", b""])
def test_a_record_that_cannot_be_read_is_null(data: bytes) -> None:
    damaged = make_record("text")._replace(data=data)
    found = values_of(Records.of([damaged, make_record("fine")]))
    assert found.bodies().to_pylist() == [None, b"fine"]
    assert found.keys().to_pylist() == [None, None]
