"""Trains: many frames in one datagram read as one run, wherever they come apart; and what strangers make of them."""

from __future__ import annotations

import random as randoms
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.errors import WireError
from rvq.limits import FLIGHT_COST_BYTES
from rvq.wire.batch import BATCH_OVERHEAD, Stamped, encode_batch, encode_even_batches, own_stride, read_batch
from rvq.wire.codec import DATA_HEADER, read_data_header
from rvq.wire.frames import DataFlag
from rvq.wire.records import Content, Record, Records, make_record, make_records
from rvq.wire.train import Train, read_train, split
from tests.wire.samples import AT, shortly

SIZE = 300


def frames_of(groups: Sequence[Sequence[object]], at: Stamped = AT) -> list[bytes]:
    """A frame for each group, all of one size but the last."""
    frames: list[bytes] = []
    for group in groups:
        frame = encode_batch(at, make_records(list(group)), SIZE if group is not groups[-1] else 0)
        frames.append(frame)
        at = at._replace(first=at.first + len(group), position=read_data_header(frame).position)
    return frames


def train_of(frames: list[bytes]) -> Train:
    train = read_train(b"".join(frames), SIZE)
    assert train is not None
    return train


even = st.lists(st.lists(st.just(b"0123456789"), min_size=7, max_size=7), min_size=2, max_size=9)
mixed = st.lists(st.lists(st.binary(max_size=20) | st.integers(0, 99), min_size=1, max_size=8), min_size=2, max_size=9)
packed = st.lists(st.lists(st.integers(0, 99), min_size=3, max_size=3), min_size=2, max_size=9)


@settings(shortly, max_examples=150)
@given(even | mixed | packed, st.integers(1, 12), st.data())
def test_the_own_stride_of_a_train_is_that_of_its_frames(
    groups: list[list[object]], slots: int, data: st.DataObject
) -> None:
    numbered = [
        [body[:-1] + bytes([place]) if isinstance(body, bytes) and len(body) == 10 else body for body in group]
        for place, group in enumerate(groups)
    ]
    train = train_of(frames_of(numbered))
    bodies = [body for group in numbered for body in group]
    assert (train.first, train.count, train.last) == (AT.first, len(bodies), AT.first + len(bodies) - 1)
    slot = data.draw(st.integers(0, slots - 1))
    own = own_stride(train.first, train.count, slot, slots)
    assert train.contents(own) == [Content(bodies[index]) for index in own]
    plain = train.plain_bodies(own)
    assert plain is None or list(plain) == [bodies[index] for index in own]
    some = data.draw(st.lists(st.integers(0, len(bodies) - 1), unique=True, max_size=9).map(sorted))
    assert train.contents(some) == [Content(bodies[index]) for index in some]


def test_frames_of_one_length_are_made_at_once_as_they_would_be_one_by_one() -> None:
    for length in (0, 7, 100, SIZE - BATCH_OVERHEAD):
        per_frame = min((SIZE - BATCH_OVERHEAD) // max(1, length), 20)
        bodies = [randoms.Random(n).randbytes(length) for n in range(4 * per_frame)]
        at_once = encode_even_batches(AT, make_records(bodies), per_frame, SIZE)
        groups = [bodies[start : start + per_frame] for start in range(0, len(bodies), per_frame)]
        one_by_one = frames_of([*groups, [b"another"]])[:-1]
        assert at_once == one_by_one
        assert all(len(frame) == SIZE for frame in at_once)
        assert list(train_of(at_once).plain_bodies(range(len(bodies))) or ()) == bodies


def test_the_header_of_a_train_is_that_of_all_its_frames() -> None:
    frames = frames_of([[b"a", b"b"], [b"c"], [b"d", b"e", b"f"]])
    train = train_of(frames)
    assert (train.header.first, train.header.count, train.stamp, train.sent_at) == (AT.first, 6, AT.stamp, AT.sent_at)
    assert train.header.position == read_data_header(frames[-1]).position
    assert list(train.firsts) == [AT.first, AT.first + 2, AT.first + 3]


def test_a_train_gives_back_the_frames_that_somebody_lacks() -> None:
    frames = frames_of([[b"a", b"b"], [b"c"], [b"d", b"e", b"f"]])
    train = train_of(frames)
    assert train.frames_with(AT.first + 1, AT.first + 2) == frames[:2]
    assert train.frames_with(AT.first + 5, AT.first + 90) == frames[2:]
    assert train.frames_with(1, AT.first - 1) == []
    assert split(b"".join(frames), SIZE) == frames


def other(frame: bytes, **fields: int) -> bytes:
    """The same frame with another header."""
    return DATA_HEADER.pack(*read_data_header(frame)._replace(**fields)) + frame[DATA_HEADER.size :]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda frames: [frames[0], frames[2], frames[1]],
        lambda frames: [frames[0], frames[0]],
        lambda frames: [frames[0], frames[2]],
        lambda frames: [frames[0], other(frames[1], stamp=3)],
        lambda frames: [frames[0], other(frames[1], stream=5)],
        lambda frames: [frames[0], other(frames[1], label_tag=5)],
        lambda frames: [frames[0], other(frames[1], type=2)],
        lambda frames: [frames[0], other(frames[1], magic=1)],
        lambda frames: [frames[0], other(frames[1], position=0)],
        lambda frames: [frames[0], frames[1], frames[2][: DATA_HEADER.size - 1]],
        lambda frames: frames[:1],
    ],
    ids=[
        "out of order",
        "twice the same",
        "one lacking",
        "two stamps",
        "two streams",
        "two labels",
        "a fragment",
        "another protocol",
        "positions fall",
        "a cut header",
        "a single frame",
    ],
)
def test_what_is_no_run_of_batches_is_no_train(spoil: object) -> None:
    frames = frames_of([[b"a"], [b"b"], [b"c"]])
    assert read_train(b"".join(spoil(frames)), SIZE) is None  # type: ignore[operator]


def test_a_frame_that_says_too_much_is_found_when_it_is_read() -> None:
    frames = encode_even_batches(AT, make_records([b"0123456789"] * 40), 20, SIZE)
    spoilt = [frame[:-1] + b"\xff" for frame in frames]
    with pytest.raises(WireError):
        train_of(spoilt).plain_bodies(range(0, 40, 3))
    uneven = frames_of([[b"a", b"bbb"], [b"c", b"ddd"]])
    cut = [uneven[0][:-2] + b"\xff\xff", uneven[1]]
    with pytest.raises(WireError):
        train_of(cut).contents(range(4))


@settings(shortly, max_examples=250)
@given(even | mixed, st.integers(0, 400), st.data())
def test_damaged_trains_raise_nothing_but_wire_errors(
    groups: list[list[object]], size: int, data: st.DataObject
) -> None:
    datagram = bytearray(b"".join(frames_of(groups)))
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(datagram) - 1))
        datagram[place] = data.draw(st.integers(0, 255))
    try:
        train = read_train(bytes(datagram), data.draw(st.sampled_from([SIZE, size])))
        if train is not None and train.count < 10_000:
            for own in (range(0, train.count, 3), range(train.count), [0, train.count - 1]):
                assert sum(len(c.body) for c in train.contents(own) if c and isinstance(c.body, bytes)) <= len(datagram)
                train.plain_bodies(own)
    except WireError:
        pass


def test_padding_says_so_in_its_frame() -> None:
    (padded,) = encode_even_batches(AT, make_records([b"ab", b"cd"]), 2, SIZE)
    batch = read_batch(padded)
    assert batch.flags == DataFlag.RAW | DataFlag.EVEN | DataFlag.PADDED
    assert batch.contents(range(2)) == [Content(b"ab"), Content(b"cd")]
    with pytest.raises(WireError):
        read_batch(other(padded, flags=int(DataFlag.RAW | DataFlag.EVEN)))
    keyed = encode_batch(AT, Records.of([make_record(b"x", key="k"), make_record(b"y")]), SIZE)
    assert len(keyed) == SIZE
    assert [content.body for content in read_batch(keyed).contents(range(2)) if content] == [b"x", b"y"]


def test_a_train_with_an_urgent_message_is_split() -> None:
    """It must not wait for its turn, so somebody has to look for it."""

    def train(last: Record) -> bytes:
        first = encode_batch(AT, Records.of([make_record(b"x"), make_record(1)]), 100)
        second = AT._replace(first=AT.first + 2, position=AT.position + 100 + FLIGHT_COST_BYTES)
        return first + encode_batch(second, Records.of([make_record(b"y"), last]))

    assert read_train(train(make_record(2)), 100) is not None
    assert read_train(train(make_record(2, urgent=True)), 100) is None
