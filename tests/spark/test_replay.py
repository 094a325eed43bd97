"""What was recorded goes out again, as what it was, and only what was chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rvq.bus import Bus
from rvq.spark.replay import chosen, replay
from rvq.wire.records import Records, make_record
from tests.spark.listening import Listening
from tests.spark.writing import NOW, STREAM, entry_of, frame, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODIES: list[Any] = ["täxt", b"\xff\x00", {"n": [1, None, 2.5]}, 17, True]


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    records = Records.of([make_record(body, key=f"k{n % 2}") for n, body in enumerate(BODIES)])
    late = Records.of([make_record("late", headers={"trace": "a1"})])
    entries = [[entry_of(frame(records, 1))], [entry_of(frame(late, 6, sent_at=NOW + 60), NOW + 60)]]
    return str(write(tmp_path_factory.mktemp("replay"), entries))


def test_bodies_keys_and_headers_are_what_they_were(spark: SparkSession, journal: str, bus: Bus) -> None:
    with Listening(bus) as listening:
        assert replay(spark, journal, bus={"port": str(bus.port)}) == 6
    by_id = {message.headers["id"]: message for message in listening.messages}
    ids = [f"{STREAM:016x}-{n}" for n in range(1, 7)]
    assert [by_id[id].body for id in ids] == [*BODIES, "late"]
    assert [by_id[id].key for id in ids[:2]] == [b"k0", b"k1"]
    assert by_id[ids[5]].headers["trace"] == b"a1"


def test_only_what_is_chosen(spark: SparkSession, journal: str) -> None:
    def ids(**choice: Any) -> list[str]:
        return [row.id[17:] for row in chosen(spark, journal, **choice).collect()]

    assert ids() == ["1", "2", "3", "4", "5", "6"]
    assert ids(key="k1") == ["2", "4"]
    assert ids(first=3, last=4) == ["3", "4"]
    assert ids(sender=STREAM, startingTimestamp=str(int((NOW + 1) * 1000))) == ["6"]
    assert ids(sender=1) == []
    assert {row.topic for row in chosen(spark, journal, to="elsewhere").collect()} == {"elsewhere"}
