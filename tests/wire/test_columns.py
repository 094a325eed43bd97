"""Records side by side: the buffers are those of the frame where that can be."""

from __future__ import annotations

import pytest

from rvq.errors import WireError
from rvq.wire.batch import encode_batch, read_batch
from rvq.wire.columns import batches_of, check_run, columns_of_run, make_columns, offsets_of, records_of
from rvq.wire.frames import DataFlag
from rvq.wire.records import Records, make_record, make_records
from rvq.wire.train import read_train
from tests.wire.samples import AT, data_frame, shorts


@pytest.mark.parametrize("bodies", [[b"one", b"two"], [b"one", b"three"], [1, "two"], [7, 8]])
def test_plain_records_stay_where_they_are(bodies: list[object]) -> None:
    datagram = encode_batch(AT, make_records(bodies))
    columns = columns_of_run(read_batch(datagram), range(301, 303))
    assert isinstance(columns.data, memoryview) and columns.data.obj is datagram
    assert columns.offsets.typecode == "i" and columns.offsets.itemsize == 4
    assert isinstance(columns.kinds, int) and columns.shards is None


def test_empty_records_of_one_length_have_offsets_too() -> None:
    columns = columns_of_run(read_batch(encode_batch(AT, make_records([b"", b"", b""]))), range(301, 304))
    assert list(columns.offsets) == [56] * 4


def test_kinds_that_differ_are_taken_off() -> None:
    columns = make_columns(
        [1, 2, 3], b"--\x00a\x01\xc0", offsets_of([b"--"])[:0] + read_offsets(2, 4, 4, 6), None, None
    )
    assert (bytes(columns.data), list(columns.offsets), columns.kinds) == (b"a\xc0", [0, 1, 1, 2], b"\x00\xff\x01")


def read_offsets(*offsets: int) -> object:
    made = offsets_of([b""])
    return type(made)("i", offsets)


def test_frames_of_a_train_that_differ_in_kind_all_say_their_kind() -> None:
    raw = encode_batch(AT, make_records([b"a", b"b"]), 100)
    at = AT._replace(first=AT.first + 2, position=AT.position + 9000)
    train = read_train(raw + encode_batch(at, make_records([1])), 100)
    assert train is not None and len(batches_of(train)) == 2
    assert records_of(train, range(2)) == (DataFlag.RAW, [b"a", b"b"])
    assert records_of(train, range(1, 3)) == (DataFlag.MIXED, [b"\x00b", b"\x01\x01"])


def test_shards_come_along() -> None:
    batch = read_batch(encode_batch(AT, Records.of([make_record(1, "user-7"), make_record(2)])))
    assert list(columns_of_run(batch, range(301, 303)).shards or ()) == [255, 0xFFFF]


def test_what_cannot_be_told_apart_is_refused() -> None:
    check_run(read_batch(data_frame(2, 1, b"ab" + shorts(56, 57, 58))), 2)
    with pytest.raises(WireError):
        check_run(read_batch(data_frame(2, 1, b"ab" + shorts(56, 57, 58))), 1)
    with pytest.raises(WireError):
        check_run(read_batch(data_frame(3, 1, b"abc" + shorts(56, 59, 57, 59))), 3)
