"""Offsets are JSON that is always spelt alike, and go both ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rvq.errors import SparkError
from rvq.journal import JournalReader, Position
from rvq.spark.offsets import as_json, from_json, head, order, resolve, starting, tail
from rvq.spark.options import read_options
from tests.spark.writing import NOW, write_bodies

A, B = f"{1:016x}", f"{2:016x}"
SEGMENT = f"part=2026092114/{A}-00000001.rvqj"


def test_keys_are_sorted_and_positions_come_back() -> None:
    offsets = {("b", A): Position(SEGMENT, 4096, 0), ("a", A): Position(SEGMENT, 8192, 7)}
    text = json.dumps(as_json(offsets))
    assert text == json.dumps(as_json(offsets), sort_keys=True)
    assert from_json(json.loads(text)) == offsets


@pytest.mark.parametrize(
    "wrong", [{"a": 5}, {"a": {A: "nowhere"}}, {"a": {B: f"{SEGMENT}:4096:0"}}, {"a": {A: f"{SEGMENT}:x:0"}}]
)
def test_what_is_no_offset_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(SparkError, match=r"take (them|it) from a query's progress"):
        from_json(wrong)


def test_ends_are_those_of_each_recorder_of_each_label_that_is_wanted(tmp_path: Path) -> None:
    for label, recorder in (("work", 1), ("work", 2), ("other", 1)):
        write_bodies(tmp_path, [b"x"] * 10, label=label, recorder=recorder)
    reader = JournalReader(tmp_path)
    options = read_options({"path": str(tmp_path), "subscribe": "work,none"}, streaming=False)
    assert set(head(reader, options)) == set(tail(reader, options)) == {("work", A), ("work", B)}
    assert all(order(tail(reader, options)[chain]) > order(at) for chain, at in head(reader, options).items())
    every = read_options({"path": str(tmp_path)}, streaming=False)
    assert set(tail(reader, every)) == {("work", A), ("work", B), ("other", A)}


def test_a_start_is_said_by_word_by_label_or_by_time(tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"x"] * 1000, per_frame=10)
    reader = JournalReader(tmp_path)
    base = {"path": str(tmp_path)}
    begin, end = reader.head("work")[A], reader.tail("work")[A]
    options = read_options(base, streaming=False)
    assert resolve(reader, options, "earliest") == {("work", A): begin}
    assert resolve(reader, options, {"work": "latest"}) == {("work", A): end}
    assert resolve(reader, options, as_json({("work", A): end})) == {("work", A): end}
    late = read_options(base | {"startingTimestamp": str(int((NOW + 5) * 1000))}, streaming=False)
    assert starting(reader, late) == {("work", A): end}


def test_offsets_for_what_is_not_subscribed_are_refused(tmp_path: Path) -> None:
    write_bodies(tmp_path, [b"x"])
    options = read_options({"path": str(tmp_path), "subscribe": "work"}, streaming=False)
    with pytest.raises(SparkError, match="'other', which is not subscribed"):
        resolve(JournalReader(tmp_path), options, {"other": "latest"})
