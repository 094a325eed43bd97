"""The history is a row for each frame and each word, and says who, what and when."""

from __future__ import annotations

import json
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from pyspark.sql.types import StructField, StructType

from rvq.journal import Entry, EntryKind, JournalReader
from rvq.spark.chains import Chains
from rvq.spark.columns import HISTORY_COLUMNS, arrow_schema
from rvq.spark.history import read_history, rows_of
from rvq.spark.options import read_options
from rvq.wire.frames import (
    NO_VERSION,
    Alive,
    Goodbye,
    GroupStamp,
    GroupState,
    Handled,
    HandledRun,
    Member,
    Nak,
    Outcome,
    SenderAlive,
    SenderGoodbye,
    Stamp,
    TableFrame,
    Version,
)
from rvq.wire.records import Records, make_record, make_records, shard_of
from tests.spark.writing import NOW, STREAM, control_of, entry_of, frame, write

ALL = StructType([StructField(name, kind) for name, kind in HISTORY_COLUMNS.items()])
MEMBERS = (Member(7, 1), Member(9, 2))
WORDS = [
    SenderAlive(STREAM, "work", 1, True, 4, 0, 1, 1, (GroupState("default", NO_VERSION, 2, False, ()),), ()),
    Stamp(STREAM, "work", 1, 1, False, (GroupStamp("default", 1, 1, Version(1, 7), MEMBERS, (), (), ()),)),
    Alive(7, "work", "default", 1, 1, True, False, 0, NO_VERSION, (), ()),
    TableFrame(7, "work", "default", Version(3, 7), MEMBERS, ()),
    Goodbye(7, "work", "default"),
    SenderGoodbye(STREAM, "work"),
]


def history_of(folder: Path, **more: str) -> list[dict[str, Any]]:
    options = read_options({"path": str(folder), "rows": "history"} | more, streaming=False)
    reader = JournalReader(folder)
    found: list[dict[str, Any]] = []
    for recorder, end in reader.tail("work").items():
        for one in Chains(reader, fail_on_data_loss=True).slices(("work", recorder), None, end):
            for batch in read_history(reader, options, one, arrow_schema(ALL)):
                found += batch.to_pylist()
    return found


def test_each_word_of_control_is_a_row(tmp_path: Path) -> None:
    write(tmp_path, [[control_of(word, NOW + n) for n, word in enumerate(WORDS)]])
    hello, stamp, joined, table, left, goodbye = history_of(tmp_path)
    assert [row["kind"] for row in (hello, stamp, joined, table, left, goodbye)] == [
        *("hello", "stamp", "hello", "table", "goodbye", "goodbye")
    ]
    assert (hello["sender"], hello["last"]) == (STREAM, 4)
    assert json.loads(hello["detail"]) == [{"group": "default", "done_to": 2, "held": False}]
    assert (stamp["sender"], stamp["stamp"], stamp["first"]) == (STREAM, 1, 1)
    (group,) = json.loads(stamp["detail"])["groups"]
    assert (group["group"], group["members"]) == ("default", [[7, 1], [9, 2]])
    assert (joined["receiver"], joined["group"], joined["sender"]) == (7, "default", None)
    assert (table["counter"], json.loads(table["detail"])["members"]) == (3, [[7, 1], [9, 2]])
    assert (left["receiver"], goodbye["sender"]) == (7, STREAM)


def test_each_run_of_outcomes_is_a_row() -> None:
    runs = (HandledRun(Outcome.ACKED, 3, 0, 2, 10, NOW), HandledRun(Outcome.DEAD, 3, 0, 12, 12, NOW + 1))
    first, second = rows_of(Handled(7, "work", "default", STREAM, 5, runs))
    assert first == {
        "kind": "handled",
        "group": "default",
        "sender": STREAM,
        "receiver": 7,
        "counter": 5,
        "stamp": 3,
        "slot": 0,
        "first": 2,
        "last": 10,
        "outcome": "acked",
        "timestamp": NOW,
    }
    assert (second["outcome"], second["first"], second["timestamp"]) == ("dead", 12, NOW + 1)


def test_a_frame_is_one_row_that_says_which_messages_it_has(tmp_path: Path) -> None:
    keyed = Records.of([make_record(1, key="k"), make_record(2)])
    share = Struct(">IIQQdI").pack(7, 3, STREAM, 100, NOW, 3) + Struct(">3H").pack(0, 5, 9) + b"\0\1xyz"
    entries = [
        entry_of(frame(make_records([b"a"] * 10), 1)),
        entry_of(frame(keyed, 11)),
        Entry(EntryKind.SHARE, 1 | 8, None, NOW, 3, share),
    ]
    write(tmp_path, [entries])
    plain, with_keys, listed = history_of(tmp_path)
    assert (plain["kind"], plain["first"], plain["last"], plain["count"], plain["step"]) == ("data", 1, 10, 10, 1)
    assert plain["sequences"] is None
    assert np.frombuffer(with_keys["shards"], "<u2").tolist() == [shard_of("k"), 0xFFFF]
    assert np.frombuffer(listed["sequences"], "<i8").tolist() == [100, 105, 109]
    assert (listed["first"], listed["last"], listed["step"], listed["stamp"]) == (100, 109, 0, 3)


def test_only_what_was_said_in_time(tmp_path: Path) -> None:
    write(tmp_path, [[control_of(word, NOW + n)] for n, word in enumerate(WORDS)])
    assert [row["kind"] for row in history_of(tmp_path, startingTimestamp=f"{int(NOW + 5)}000")] == ["goodbye"]


def test_words_that_are_no_history_are_passed_over() -> None:
    assert rows_of(Nak(1, 2, (), ())) == []
