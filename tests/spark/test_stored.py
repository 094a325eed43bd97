"""What recorders store is told apart, and large messages are put together."""

from __future__ import annotations

import numpy as np
import pytest

from rvq.errors import JournalDamaged
from rvq.journal import EntryKind
from rvq.spark.stored import FRAGMENTS, FRAME, NONE, SHARE, TRAIN, read_whole, stored_kinds
from rvq.wire.records import RICH, make_record, read_record, shard_of
from tests.spark.writing import STREAM, fragments_of


def test_entries_without_messages_are_passed_over() -> None:
    kinds = np.array([*EntryKind, 5, 99], dtype=np.uint8)
    assert stored_kinds(kinds).tolist() == [FRAME, TRAIN, FRAGMENTS, SHARE, NONE, NONE, NONE, NONE]


def test_a_large_message_is_put_together_from_its_fragments() -> None:
    record = make_record("x" * 100_000, key="user-7")
    whole = read_whole(bytes(fragments_of(record, 12).payload))
    assert (whole.stream, whole.sequence, whole.kind, whole.shard) == (STREAM, 12, RICH, shard_of("user-7"))
    assert read_record(whole.kind, whole.data).body == "x" * 100_000


@pytest.mark.parametrize("damage", [b"", b"\0\0\0\1", b"\0\0\0\2\0\5\0\5helloworld"])
def test_fragments_that_are_none_are_damage(damage: bytes) -> None:
    with pytest.raises(JournalDamaged, match="fragments cannot be read"):
        read_whole(damage)
