"""Messages are found in blocks at once, and are those that the frames have when they are read one by one."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.errors import JournalDamaged
from rvq.journal import Block, Entry, EntryKind, JournalReader
from rvq.journal.blocks import encode_block, read_block_header
from rvq.journal.layout import BLOCK
from rvq.spark.blocks import Messages, ragged, read_messages
from rvq.wire.batch import read_batch
from rvq.wire.codec import read_data_header
from rvq.wire.frames import SenderGoodbye
from rvq.wire.records import NO_SHARD, RAW, Records, make_record, make_records, read_record, shard_of
from rvq.wire.stored import read_stored, store
from tests.spark.writing import NOW, STREAM, control_of, entry_of, fragments_of, frame, train_of, write
from tests.wire.samples import record_lists, shortly


def block_of(entries: list[Entry]) -> Block:
    written = encode_block(entries, 4096, 0, 0)
    data = b"".join(written.parts)
    header = read_block_header(data, 0, 4096, 0)
    assert header is not None
    return Block("part=2026092114/0000000000000001-00000001.rvqj", header, memoryview(data)[BLOCK.size :])


def bodies_of(messages: Messages) -> list[Any]:
    places = zip(messages.kind.tolist(), messages.start, messages.end, strict=True)
    return [read_record(kind, messages.data[start:end]).body for kind, start, end in places]


def test_ragged_counts_on_from_each_start() -> None:
    assert ragged(np.array([5, 9, 0]), np.array([3, 0, 2])).tolist() == [5, 6, 7, 0, 1]
    assert ragged(np.array([5, 9]), np.array([2, 2]), 2).tolist() == [5, 7, 9, 11]


@shortly
@given(st.lists(record_lists, min_size=1, max_size=5))
def test_whatever_frames_have_is_what_their_readers_read(lists: list[list[Any]]) -> None:
    numbers = count(1)
    frames = [frame(Records.of(records), next(numbers) * 100) for records in lists]
    messages = read_messages([block_of([entry_of(one) for one in frames])])
    expected, shards, sequences = [], [], []
    for datagram in frames:
        batch = read_batch(datagram)
        every = range(batch.count)
        expected += [content and content.body for content in batch.contents(every)]
        shards += list(batch.shards or [NO_SHARD] * batch.count)
        sequences += range(batch.first, batch.last + 1)
    assert bodies_of(messages) == expected
    assert messages.sequence.tolist() == sequences
    assert (messages.shard.tolist() if messages.shard is not None else [NO_SHARD] * len(messages)) == shards


def test_frames_trains_fragments_and_control_come_in_the_order_in_which_they_lie() -> None:
    large = make_record(b"L" * 5000)
    entries = [
        entry_of(frame(make_records([b"a", b"bb"]), 1)),
        train_of([b"t%03d" % n for n in range(8)], 3, per_frame=4, size=100),
        control_of(SenderGoodbye(STREAM, "work")),
        fragments_of(large, 11),
        entry_of(frame(make_records(["text", {"n": 1}]), 12)),
    ]
    messages = read_messages([block_of(entries)])
    assert bodies_of(messages) == [b"a", b"bb", *(b"t%03d" % n for n in range(8)), large.data, "text", {"n": 1}]
    assert messages.sequence.tolist() == [*range(1, len(messages) + 1)]
    assert messages.ordinal.tolist() == [*range(len(messages))]


def test_a_share_has_only_its_own_messages() -> None:
    header = Struct(">IIQQdI").pack(7, 3, STREAM, 100, NOW, 3)
    stride = header + Struct(">HH").pack(1, 4) + (2).to_bytes(2, "big") + b"aabbcc"
    listed = header + Struct(">3H3H3H").pack(0, 5, 9, 8, NO_SHARD, 9, 1, 0, 2) + b"xyz"
    entries = [
        Entry(EntryKind.SHARE, 1 | 8 | 16, None, NOW, 3, stride),
        Entry(EntryKind.SHARE, 1 | 4, None, NOW, 3, listed),
    ]
    messages = read_messages([block_of(entries)])
    assert messages.sequence.tolist() == [101, 105, 109, 100, 105, 109]
    assert bodies_of(messages) == [b"aa", b"bb", b"cc", b"x", b"", b"yz"]
    assert messages.shard is not None
    assert messages.shard.tolist() == [NO_SHARD] * 3 + [8, NO_SHARD, 9]
    assert messages.frames.step.tolist() == [4, 0]
    assert messages.kind.tolist() == [RAW] * 6


@shortly
@given(record_lists, st.data())
def test_what_recorders_store_is_read_as_they_read_it(records: list[Any], data: st.DataObject) -> None:
    datagram = frame(Records.of(records), 41)
    strides = st.builds(range, st.integers(0, len(records) - 1), st.just(len(records)), st.integers(1, 4))
    some = st.sets(st.integers(0, len(records) - 1), min_size=1).map(sorted)
    places = data.draw(st.none() | strides | some)
    stored = store(read_data_header(datagram), read_batch(datagram), [datagram], places)
    expected = read_stored(*stored)
    entry = Entry(stored.kind, stored.flags, None, NOW, expected.count, stored.payload)
    messages = read_messages([block_of([entry])])
    assert bodies_of(messages) == [content and content.body for content in expected.contents()]
    assert messages.sequence.tolist() == list(expected.sequences)
    shards = expected.columns().shards or [NO_SHARD] * expected.count
    assert (messages.shard.tolist() if messages.shard is not None else [NO_SHARD] * len(messages)) == list(shards)


def test_several_blocks_are_read_as_one(tmp_path: Path) -> None:
    write(tmp_path, [[entry_of(frame(make_records([n]), n + 1))] for n in range(50)])
    reader = JournalReader(tmp_path)
    (start,) = reader.head("work").values()
    messages = read_messages(list(reader.blocks("work", start)))
    assert bodies_of(messages) == list(range(50))
    assert messages.ordinal.tolist() == list(range(50))
    assert messages.block.tolist() == list(range(50))


def test_keys_tell_their_shards() -> None:
    records = Records.of([make_record(1, key="k"), make_record(2)])
    messages = read_messages([block_of([entry_of(frame(records, 1))])])
    assert messages.shard is not None
    assert messages.shard.tolist() == [shard_of("k"), NO_SHARD]


@pytest.mark.parametrize(
    "entry",
    [
        Entry(EntryKind.FRAME, 0, None, NOW, 1, b"short"),
        Entry(EntryKind.FRAME, 0, None, NOW, 1, bytes(100)),
        Entry(EntryKind.TRAIN, 0, None, NOW, 1, b"\0\0" + bytes(100)),
        Entry(EntryKind.SHARE, 0, None, NOW, 1, bytes(36)),
        Entry(EntryKind.SHARE, 24, None, NOW, 9, Struct(">IIQQdI").pack(1, 1, 1, 1, NOW, 2**31) + bytes(50)),
        entry_of(frame(make_records([b"a"]), 1))._replace(rows=2),
    ],
    ids=["short", "zeros", "train", "share", "many", "rows"],
)
def test_an_entry_that_is_not_what_it_says_is_damage(entry: Entry) -> None:
    with pytest.raises(JournalDamaged):
        read_messages([block_of([entry])])
