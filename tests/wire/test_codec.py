"""Bytes <-> control frames: golden bytes, there and back, and every kind of bytes that a stranger can send."""

from __future__ import annotations

import math
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rvq import limits
from rvq.errors import WireError
from rvq.wire import frames as f
from rvq.wire.codec import (
    DATA_HEADER,
    HEADER,
    LIST_MAX,
    MAGIC,
    SHAPES,
    UINT_MAX,
    VERSION,
    decode_control,
    encode_control,
    peek,
    read_data_header,
)

TAG = 0xC0FFEE07
SOURCE = 0x0123456789ABCDEF
REPORT = f.StreamReport(
    5, 70_000, 4_194_304, (f.LaneProgress(2, 1, 1000, (1003, 1003, 1009, 1021)),), (f.Tried(1004, 2, 11),)
)

shortly = settings(max_examples=80, deadline=None, derandomize=True, database=None)

GOLDEN: list[tuple[f.Control, str]] = [
    (
        f.SenderAlive(
            SOURCE,
            "work",
            7,
            True,
            300,
            70_000,
            1,
            2,
            (
                f.GroupState("default", f.Version(3, 11), 250, False, (f.ShardsDone(2, (4_294_967_295, 3)),)),
                f.GroupState("journal", f.NO_VERSION, 0, True, ()),
            ),
            (f.Echo(11, 41), f.Echo(12, 1)),
        ),
        "7276710110000000c0ffee07000000000123456789abcdef0000000000000000"
        "99a4776f726b07c3cd012cce0001117001029295a764656661756c7492030bccfac291920292ceffffffff0395a76a6f75726e616c92000000c390"
        "92920b29920c01",
    ),
    (
        f.Stamp(
            SOURCE,
            "work",
            2,
            301,
            False,
            (
                f.GroupStamp(
                    "default",
                    2,
                    301,
                    f.Version(3, 11),
                    (f.Member(11, 1), f.Member(12, 4)),
                    (13,),
                    (f.Silence(14, 1.25),),
                    (15,),
                    (),
                    (f.Moved(1, 3, 290, 12),),
                ),
            ),
        ),
        "7276710111000000c0ffee07000000000123456789abcdef0000000000000000"
        "95a4776f726b02cd012dc2919aa764656661756c7402cd012d92030b92920b01920c04910d91920ecb3ff40000000000"
        "00910f9091940103cd01220c",
    ),
    (
        f.Progress(SOURCE, 99, (f.LaneAnswer(2, 1, 901, *REPORT.lanes[0][2:], False),), REPORT.tried),
        "7276710112000000c0ffee07000000000123456789abcdef0000000000000000"
        "936391960201cd0385cd03e894cd03ebcd03ebcd03f1cd03fdc29193cd03ec020b",
    ),
    (f.SenderGoodbye(SOURCE, "work"), "7276710113000000c0ffee07000000000123456789abcdef000000000000000091a4776f726b"),
    (
        f.AskTable(SOURCE, "default", f.Version(3, 11)),
        "7276710114000000c0ffee07000000000123456789abcdef000000000000000092a764656661756c7492030b",
    ),
    (
        f.Alive(
            SOURCE,
            "work",
            "default",
            1,
            41,
            False,
            True,
            6,
            f.Version(3, 11),
            (f.Heard(5, 7, 2, True, True),),
            (REPORT,),
            True,
            f.Pause(3, 21, True),
        ),
        "7276710120000000c0ffee07000000000123456789abcdef0000000000000000"
        "9ca4776f726ba764656661756c740129c2c30692030b9195050702c3c3919505ce00011170ce0040000091940201cd03e894"
        "cd03ebcd03ebcd03f1cd03fd9193cd03ec020bc3930315c3",
    ),
    (
        f.TableFrame(
            SOURCE, "work", "default", f.Version(3, 11), (f.Member(11, 1), f.Member(12, 4)), (13,), (0, 4) * 512
        ),
        "7276710121000000c0ffee07000000000123456789abcdef0000000000000000"
        "96a4776f726ba764656661756c7492030b92920b01920c04910ddc0400" + "0004" * 512,
    ),
    (
        f.Report(SOURCE, REPORT),
        "7276710122000000c0ffee07000000000123456789abcdef0000000000000000"
        "919505ce00011170ce0040000091940201cd03e894cd03ebcd03ebcd03f1cd03fd9193cd03ec020b",
    ),
    (
        f.Nak(SOURCE, 5, (10, 12, 20, 20), (f.MissingParts(31, (0, 2)),)),
        "7276710123000000c0ffee07000000000123456789abcdef00000000000000009305940a0c141491921f920002",
    ),
    (f.AskStamps(SOURCE, 5, 1, 2), "7276710124000000c0ffee07000000000123456789abcdef000000000000000093050102"),
    (
        f.AskProgress(SOURCE, 5, "default", 99, (f.LaneQuestion(2, 1, 901, 1003),)),
        "7276710125000000c0ffee07000000000123456789abcdef00000000000000009405a764656661756c746391940201cd0385cd03eb",
    ),
    (
        f.Goodbye(SOURCE, "work", "default"),
        "7276710126000000c0ffee07000000000123456789abcdef000000000000000092a4776f726ba764656661756c74",
    ),
    (
        f.HandOver(SOURCE, 5, "default", 2, 3, 290, 12, 6),
        "7276710127000000c0ffee07000000000123456789abcdef00000000000000009705a764656661756c740203cd01220c06",
    ),
    (
        f.Handled(
            SOURCE,
            "work",
            "default",
            5,
            17,
            (f.HandledRun(f.Outcome.ACKED, 2, 1, 301, 310, 1.5), f.HandledRun(f.Outcome.RETRIED, 2, 1, 313, 313, 1.75)),
        ),
        "7276710128000000c0ffee07000000000123456789abcdef0000000000000000"
        "95a4776f726ba764656661756c7405119296010201cd012dcd0136cb3ff800000000000096040201cd0139cd0139cb3ffc000000000000",
    ),
    (
        f.Order(SOURCE, "work", "default", 0, 99, f.OrderKind.PAUSE, 0, 4, "ops"),
        "7276710140000000c0ffee07000000000123456789abcdef000000000000000098a4776f726ba764656661756c74006303"
        "0004a36f7073",
    ),
    (
        f.Order(SOURCE, "work", "default", 12, 100, f.OrderKind.WEIGHT, 3, 0, "ops"),
        "7276710140000000c0ffee07000000000123456789abcdef000000000000000098a4776f726ba764656661756c740c6402"
        "0300a36f7073",
    ),
    (
        f.OrderDone(SOURCE, 99, f.OrderOutcome.CARRIED_OUT),
        "7276710141000000c0ffee07000000000123456789abcdef0000000000000000926301",
    ),
    (
        f.About(
            SOURCE,
            "work",
            "default",
            False,
            True,
            "host-a",
            4711,
            1.5,
            2,
            f.Version(3, 11),
            1,
            2,
            4,
            5,
            301,
            6,
            0.25,
            7,
            8,
            tuple(range(13)),
        ),
        "7276710130000000c0ffee07000000000123456789abcdef0000000000000000"
        "dc0013a4776f726ba764656661756c74c2c3a6686f73742d61cd1267cb3ff80000000000000292030b01020405cd012d06cb3fd0000000"
        "00000007089d000102030405060708090a0b0c",
    ),
    (
        f.Peers(SOURCE, 77, 5, 6, True, (1, 2**34), (f.PeerAddress("10.0.0.2", 7400), f.PeerAddress("fd00::1", 9))),
        "7276710131000000c0ffee07000000000123456789abcdef0000000000000000964d0506c39201cf00000004000000009292"
        "a831302e302e302e32cd1ce892a7666430303a3a3109",
    ),
]


def datagram_of(kind: int, body: Any, source: int = SOURCE) -> bytes:
    """A control frame as a stranger would make it: any body, or any bytes in its place."""
    packed = body if isinstance(body, bytes) else msgpack.packb(body)
    return HEADER.pack(MAGIC, kind, 0, 0, TAG, 0, source, 0) + packed


def refused(datagram: bytes) -> bool:
    """True if it is refused in the only way allowed. Any other exception fails the test."""
    try:
        decode_control(datagram)
    except WireError:
        return True
    return False


# --- golden bytes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("frame", "golden"), GOLDEN, ids=lambda value: type(value).__name__)
def test_the_bytes_of_control_frames_never_change(frame: f.Control, golden: str) -> None:
    assert encode_control(frame, TAG).hex() == golden
    assert decode_control(bytes.fromhex(golden)) == frame
    assert peek(bytes.fromhex(golden)) == (bytes.fromhex(golden)[4], TAG)


def test_there_is_a_golden_frame_of_every_control_type() -> None:
    assert {type(frame) for frame, _ in GOLDEN} == {shape for shape, _ in SHAPES.values()}
    assert set(SHAPES) == {kind for kind in f.FrameType if kind >= 16}


def test_the_header_is_readable_with_one_struct_call() -> None:
    datagram = encode_control(f.SenderGoodbye(SOURCE, "work"), TAG)
    magic, kind, flags, count, tag, stamp, stream, first = struct.unpack_from(">4sBBHIIQQ", datagram)
    assert (magic, VERSION) == (b"rvq\x01", 1)
    assert (kind, flags, count, tag, stamp, stream, first) == (f.FrameType.SENDER_GOODBYE, 0, 0, TAG, 0, SOURCE, 0)


# --- there and back -----------------------------------------------------------------------------------------------

numbers = st.integers(0, UINT_MAX) | st.integers(0, 300)
at_least_1 = st.integers(1, UINT_MAX)
zero = st.just(0)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=limits.LABEL_BYTES_MAX // 4)
versions = st.builds(f.Version, numbers, numbers)


def tuples_of(values: st.SearchStrategy[Any], most: int = 5) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=most).map(tuple)


members = st.dictionaries(numbers, st.integers(1, limits.WEIGHT_MAX), max_size=6).map(
    lambda weights: tuple(f.Member(id, weights[id]) for id in sorted(weights))
)
runs = st.sets(numbers, max_size=8).map(lambda ends: tuple(sorted(ends)[: len(ends) // 2 * 2]))
lanes = tuples_of(st.builds(f.LaneProgress, numbers, numbers, numbers, runs))
answers = tuples_of(st.builds(f.LaneAnswer, numbers, numbers, numbers, numbers, runs, st.booleans()))
questions = tuples_of(st.builds(f.LaneQuestion, numbers, numbers, numbers, numbers))
shards_done = st.builds(f.ShardsDone, numbers, tuples_of(numbers))
tried = tuples_of(st.builds(f.Tried, numbers, numbers, numbers))
reports = st.builds(f.StreamReport, numbers, numbers, numbers, lanes, tried)
silences = st.builds(f.Silence, numbers, st.floats(0, allow_nan=False, allow_infinity=False))
group_states = st.builds(f.GroupState, names, versions, numbers, st.booleans(), tuples_of(shards_done))


def stamps(keyed: bool) -> st.SearchStrategy[f.Stamp]:
    """With keys, a group's stamp has a map of the shards."""
    group_stamps = st.builds(
        f.GroupStamp,
        names,
        numbers,
        numbers,
        versions,
        members.filter(bool),
        tuples_of(numbers),
        tuples_of(silences),
        tuples_of(numbers),
        st.just((0,) * 1024 if keyed else ()),
        tuples_of(st.builds(f.Moved, numbers, numbers, numbers, numbers), limits.MOVED_MAX),
    )
    return st.builds(f.Stamp, numbers, names, numbers, numbers, st.just(keyed), tuples_of(group_stamps))


seconds = st.floats(0, allow_nan=False, allow_infinity=False)
heard = st.builds(f.Heard, numbers, numbers, numbers, st.booleans(), st.booleans())
handled_runs = st.tuples(numbers, numbers).flatmap(
    lambda ends: st.builds(
        f.HandledRun,
        st.sampled_from(f.Outcome),
        numbers,
        numbers,
        st.just(min(ends)),
        st.just(max(ends)),
        st.floats(0, allow_nan=False, allow_infinity=False),
    )
)
missing_parts = st.builds(f.MissingParts, numbers, st.sets(numbers, max_size=4).map(sorted).map(tuple))


orders = st.one_of(
    st.builds(f.Order, numbers, names, names, at_least_1, numbers, st.just(f.OrderKind.DRAIN), zero, zero, names),
    st.builds(
        f.Order,
        *(numbers, names, names, at_least_1, numbers, st.just(f.OrderKind.WEIGHT)),
        st.integers(1, limits.WEIGHT_MAX),
        zero,
        names,
    ),
    st.builds(
        f.Order,
        *(numbers, names, names, zero, numbers, st.sampled_from([f.OrderKind.PAUSE, f.OrderKind.RESUME])),
        zero,
        at_least_1,
        names,
    ),
)


def a_map(members: tuple[f.Member, ...]) -> tuple[int, ...]:
    slots = sum(member.weight for member in members)
    return tuple(shard * shard % slots for shard in range(1024)) if slots else ()


def a_stamp(source: int, label: str, number: int, at: int, keyed: bool, groups: tuple[f.GroupStamp, ...]) -> f.Stamp:
    """With a map of the shards in each group if there may be keys."""
    with_maps = tuple(group._replace(shard_map=a_map(group.members)) for group in groups)
    return f.Stamp(source, label, number, at, keyed, with_maps if keyed else groups)


def a_table(source: int, label: str, group: str, version: f.Version, members: Any, draining: Any) -> f.TableFrame:
    return f.TableFrame(source, label, group, version, members, draining, a_map(members))


controls: st.SearchStrategy[f.Control] = st.one_of(
    st.builds(
        f.SenderAlive,
        numbers,
        names,
        numbers,
        st.booleans(),
        numbers,
        numbers,
        numbers,
        numbers,
        tuples_of(group_states),
        tuples_of(st.builds(f.Echo, numbers, numbers)),
    ),
    st.booleans().flatmap(stamps),
    st.builds(f.Progress, numbers, numbers, answers, tried),
    st.builds(f.SenderGoodbye, numbers, names),
    st.builds(f.AskTable, numbers, names, versions),
    st.builds(
        f.Alive,
        numbers,
        names,
        names,
        st.integers(1, limits.WEIGHT_MAX),
        numbers,
        st.booleans(),
        st.booleans(),
        numbers,
        versions,
        tuples_of(heard),
        tuples_of(reports),
        st.booleans(),
        st.builds(f.Pause, numbers, numbers, st.booleans()),
    ),
    st.builds(f.TableFrame, numbers, names, names, versions, members, tuples_of(numbers), st.just(())),
    st.builds(a_table, numbers, names, names, versions, members, tuples_of(numbers)),
    st.builds(f.Report, numbers, reports),
    st.builds(f.Nak, numbers, numbers, runs, tuples_of(missing_parts)),
    st.builds(f.AskStamps, numbers, numbers, numbers, numbers),
    st.builds(f.AskProgress, numbers, numbers, names, numbers, questions),
    st.builds(f.Goodbye, numbers, names, names),
    st.builds(f.HandOver, numbers, numbers, names, numbers, numbers, numbers, numbers, numbers),
    st.builds(f.Handled, numbers, names, names, numbers, numbers, tuples_of(handled_runs)),
    orders,
    st.builds(f.OrderDone, numbers, numbers, st.sampled_from(f.OrderOutcome)),
    st.builds(
        f.About,
        numbers,
        names,
        st.just("") | names,
        st.booleans(),
        st.booleans(),
        st.just("") | names,
        numbers,
        seconds,
        numbers,
        versions,
        *[numbers] * 6,
        seconds,
        numbers,
        numbers,
        tuples_of(numbers, limits.COUNTERS_MAX),
    ),
    st.builds(
        f.Peers,
        *[numbers] * 4,
        st.booleans(),
        tuples_of(numbers),
        tuples_of(st.builds(f.PeerAddress, names, numbers), limits.PEERS_TOLD_MAX),
    ),
)


@settings(shortly, max_examples=250)
@given(controls, st.integers(0, 2**32 - 1))
def test_every_control_frame_comes_back_as_it_was(frame: f.Control, tag: int) -> None:
    datagram = encode_control(frame, tag)
    decoded = decode_control(datagram)
    assert decoded == frame
    assert type(decoded) is type(frame)
    assert peek(datagram)[1] == tag


def test_what_is_inside_a_frame_has_its_names_again() -> None:
    for frame, _ in GOLDEN:
        decoded = decode_control(encode_control(frame, TAG))
        if isinstance(decoded, f.Stamp):
            assert decoded.groups[0].members[1].weight == 4
            assert decoded.groups[0].silent[0].seconds == 1.25
        if isinstance(decoded, f.Alive):
            assert decoded.reports[0].lanes[0].runs[-1] == 1021
            assert decoded.version.keeper == 11


def test_a_full_table_fits_the_codec() -> None:
    full = tuple(f.Member(id, limits.SLOTS_MAX // limits.MEMBERS_MAX) for id in range(limits.MEMBERS_MAX))
    shard_map = tuple(range(limits.SLOTS_MAX - 1024, limits.SLOTS_MAX))
    table = f.TableFrame(SOURCE, "work", "default", f.Version(1, 1), full, (), shard_map)
    datagram = encode_control(table, TAG)
    assert decode_control(datagram) == table
    assert len(datagram) <= limits.DATAGRAM_BYTES_MAX


def test_a_name_of_255_bytes_passes_and_one_of_256_does_not() -> None:
    longest = "ü" * 127 + "u"
    assert not refused(encode_control(f.SenderGoodbye(SOURCE, longest), TAG))
    assert refused(encode_control(f.SenderGoodbye(SOURCE, longest + "u"), TAG))
    assert refused(encode_control(f.SenderGoodbye(SOURCE, ""), TAG))


# --- what strangers send ------------------------------------------------------------------------------------------

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(codec="utf-8"), max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=10) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=20,
)
kinds = st.sampled_from(sorted(SHAPES))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A good frame with some bytes changed, cut out, put in or cut off."""
    datagram = bytearray(encode_control(draw(controls), TAG))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(datagram)))
        end = place + draw(st.sampled_from([0, 1, 1, 1, 2, 9]))
        datagram[place:end] = draw(st.binary(max_size=3))
    return bytes(datagram[: draw(st.integers(0, len(datagram)))] if draw(st.booleans()) else datagram)


@shortly
@given(st.binary(max_size=200))
@example(b"")
@example(b"rvq\x01")
def test_random_bytes_raise_nothing_but_wire_errors(datagram: bytes) -> None:
    for decode in (peek, read_data_header, decode_control):
        try:
            decode(datagram)
        except WireError:
            continue


@settings(shortly, max_examples=250)
@given(damaged())
def test_a_damaged_frame_is_refused_or_still_a_frame(datagram: bytes) -> None:
    try:
        frame = decode_control(datagram)
    except WireError:
        return
    # What was let in can be passed on: nobody can be made to say what the others refuse.
    assert decode_control(encode_control(frame, TAG)) == frame


@shortly
@given(kinds, st.binary(max_size=100))
def test_random_bodies_raise_nothing_but_wire_errors(kind: int, body: bytes) -> None:
    refused(datagram_of(kind, body))


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """A golden frame with something else in the place of one value, however deep inside."""
    datagram = encode_control(draw(st.sampled_from([frame for frame, _ in GOLDEN])), TAG)
    body = place = msgpack.unpackb(datagram[HEADER.size :])
    index = draw(st.integers(0, len(place) - 1))
    while type(place[index]) is list and place[index] and draw(st.integers(0, 9)):
        place = place[index]
        index = draw(st.integers(0, len(place) - 1))
    place[index] = draw(anything)
    return datagram_of(datagram[4], body)


@settings(shortly, max_examples=250)
@given(bent())
def test_something_else_anywhere_in_a_body_raises_nothing_but_wire_errors(datagram: bytes) -> None:
    refused(datagram)


@pytest.mark.parametrize("frame", [frame for frame, _ in GOLDEN], ids=lambda frame: type(frame).__name__)
def test_a_frame_that_is_cut_or_too_long_is_refused(frame: f.Control) -> None:
    datagram = encode_control(frame, TAG)
    assert all(refused(datagram[:length]) for length in range(len(datagram)))
    assert refused(datagram + b"\x00")


@pytest.mark.parametrize("frame", [frame for frame, _ in GOLDEN], ids=lambda frame: type(frame).__name__)
@pytest.mark.parametrize(
    "odd",
    [None, -1, 2**63, 2**64 - 1, math.nan, math.inf, "", "x" * 256, b"x", [], [[]], {}, {"a": 1}, [1] * 5000],
    ids=repr,
)
def test_an_odd_value_in_any_field_raises_nothing_but_wire_errors(frame: f.Control, odd: Any) -> None:
    datagram = encode_control(frame, TAG)
    body = msgpack.unpackb(datagram[HEADER.size :])
    for place in range(len(body)):
        refused(datagram_of(datagram[4], [*body[:place], odd, *body[place + 1 :]]))


@pytest.mark.parametrize("kind", sorted(SHAPES))
@pytest.mark.parametrize("depth", [100, 900, 990, 1000, 1020, 1500, 60_000])
def test_deep_nesting_is_refused(kind: int, depth: int) -> None:
    nested = b"\x91" * depth + b"\xc0"
    assert refused(datagram_of(kind, nested))
    for fields in range(1, 10):
        assert refused(datagram_of(kind, bytes([0x90 + fields]) + nested + b"\xc0" * (fields - 1)))


@pytest.mark.parametrize("kind", sorted(SHAPES))
@pytest.mark.parametrize(
    "claim",
    [
        b"\xdc\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xde\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xd9\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x05",
    ],
    ids=bytes.hex,
)
def test_huge_claims_are_refused(kind: int, claim: bytes) -> None:
    assert refused(datagram_of(kind, claim))
    assert refused(datagram_of(kind, claim * 10_000))


def test_lists_as_long_as_the_datagram_nested_in_each_other_are_refused_unmade() -> None:
    claim = b"\xdc" + (LIST_MAX + 1).to_bytes(2, "big")
    with pytest.raises(WireError) as caught:
        decode_control(datagram_of(f.FrameType.NAK, claim * 1000 + b"\x00" * 60_000))
    assert "max_array_len" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "body",
    [
        b"\x91\xd4\x05\x00",  # extension type 5
        b"\x91\xd6\xff\x00\x00\x00\x00",  # a timestamp
        b"\x91\xc7\x05\xff\x00\x00\x00\x00\x00",  # a timestamp of a length that there is not
        b"\x91\xd7\xff\xff\xff\xff\xff\x00\x00\x00\x00",  # a timestamp with too many nanoseconds
        b"\x91\xc1",  # the byte that msgpack never uses
        b"\x91\xa2\xff\xfe",  # not UTF-8
        b"\x91\xa3\xed\xa0\x80",  # a lone surrogate
        b"\x91\xa2\xc0\x80",  # an overlong zero
        b"\x91\x81\x90\x01",  # a map with a list as key
        b"\x91\x81\x01\x01",  # a map with a number as key
        b"\x91\xc4\x04work",  # a name as bytes
        b"\x91\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00",  # NaN
    ],
    ids=bytes.hex,
)
def test_what_msgpack_has_and_control_frames_have_not_is_refused(body: bytes) -> None:
    assert refused(datagram_of(f.FrameType.SENDER_GOODBYE, body))


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, -0.5, "1", None, True])
def test_a_silence_that_is_no_duration_is_refused(seconds: Any) -> None:
    group = ["default", 1, 1, [1, 1], [[9, 1]], [], [[14, seconds]], [], [], []]
    assert refused(datagram_of(f.FrameType.STAMP, ["work", 1, 1, False, [group]]))


def test_a_silence_in_whole_seconds_is_read() -> None:
    group = ["default", 1, 1, [1, 1], [[9, 1]], [], [[14, 2]], [], [], []]
    stamp = decode_control(datagram_of(f.FrameType.STAMP, ["work", 1, 1, False, [group]]))
    assert isinstance(stamp, f.Stamp)
    assert stamp.groups[0].silent == (f.Silence(14, 2.0),)


def test_true_is_not_a_number_and_one_is_not_a_flag() -> None:
    assert refused(datagram_of(f.FrameType.ASK_STAMPS, [True, 1, 2]))
    assert refused(datagram_of(f.FrameType.STAMP, ["work", 1, 1, 1, []]))


@pytest.mark.parametrize("table", [[[2, 1], [1, 1]], [[1, 1], [1, 1]], [[1, 0]], [[1, limits.WEIGHT_MAX + 1]]])
def test_members_out_of_order_twice_or_of_odd_weight_are_refused(table: list[list[int]]) -> None:
    assert refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], table, [], []]))


@pytest.mark.parametrize(("table", "is_refused"), [([], True), ([[9, 1]], False)])
def test_a_stamp_without_slots_is_refused(table: list[list[int]], is_refused: bool) -> None:
    group = ["default", 1, 1, [1, 1], table, [], [], [], [], []]
    assert refused(datagram_of(f.FrameType.STAMP, ["work", 1, 1, False, [group]])) == is_refused


@pytest.mark.parametrize(
    ("moved", "is_refused"),
    [
        ([[1, 2, 30, 9]], False),
        ([[1, 2, 30, 9]] * limits.MOVED_MAX, False),
        ([[1, 2, 30, 9]] * (limits.MOVED_MAX + 1), True),
        ([[1, 2, 30]], True),
        ([[1, 2, 30, -9]], True),
        (None, True),
    ],
)
def test_what_a_stamp_moves_is_a_short_list_of_parts_of_lanes(moved: Any, is_refused: bool) -> None:
    group = ["default", 1, 1, [1, 1], [[9, 1]], [], [], [], [], moved]
    assert refused(datagram_of(f.FrameType.STAMP, ["work", 1, 1, False, [group]])) == is_refused


@pytest.mark.parametrize(
    ("run", "is_refused"),
    [
        ([1, 2, 1, 301, 310, 1.5], False),
        ([6, 2, 1, 301, 301, 1], False),
        ([0, 2, 1, 301, 310, 1.5], True),
        ([7, 2, 1, 301, 310, 1.5], True),
        ([True, 2, 1, 301, 310, 1.5], True),
        ([1, 2, 1, 310, 301, 1.5], True),
        ([1, 2, 1, 301, 310, math.nan], True),
        ([1, 2, 1, 301, 310], True),
    ],
)
def test_what_recorders_are_told_is_a_list_of_runs_with_known_outcomes(run: list[Any], is_refused: bool) -> None:
    assert refused(datagram_of(f.FrameType.HANDLED, ["work", "default", 5, 1, [run]])) == is_refused


def test_no_more_runs_are_told_at_once_than_fit_a_frame() -> None:
    run = f.HandledRun(f.Outcome.UNREADABLE, *[UINT_MAX] * 4, 1e9)
    full = f.Handled(SOURCE, "w" * 255, "g" * 255, UINT_MAX, UINT_MAX, (run,) * limits.HANDLED_RUNS_MAX)
    datagram = encode_control(full, TAG)
    assert decode_control(datagram) == full
    assert len(datagram) <= limits.DATAGRAM_BYTES_MAX // 4
    assert refused(encode_control(f.Handled(SOURCE, "w", "g", 1, 1, (*full.runs, run)), TAG))


def is_refused(keyed: bool, members: list[list[int]], shard_map: Any) -> tuple[bool, bool]:
    """A table, and a stamp, with this map."""
    group = ["default", 1, 1, [1, 1], members, [], [], [], shard_map, []]
    return (
        refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], members, [], shard_map])),
        refused(datagram_of(f.FrameType.STAMP, ["work", 1, 1, keyed, [group]])),
    )


def test_a_shard_map_of_slots_that_there_are_is_read_even_if_it_is_not_even() -> None:
    assert is_refused(True, [[7, 1], [9, 2]], [0, 1, 2, 2] * 256) == (False, False)
    assert is_refused(True, [[7, 1], [9, 2]], [2] * 1024) == (False, False)


@pytest.mark.parametrize(
    "shard_map",
    [
        [0, 1, 2, 3] * 256,
        [0] * 1023 + [-1],
        [0] * 1023 + [2**40],
        [0] * 1023 + [True],
        [0] * 1023 + [0.0],
        [0] * 1023 + [None],
        [0] * 1023,
        [0] * 1025,
        [0],
        0,
        None,
        "",
    ],
    ids=lambda shard_map: f"{str(shard_map)[-9:]}",
)
def test_a_shard_map_that_is_cut_or_names_slots_that_there_are_not_is_refused(shard_map: Any) -> None:
    assert is_refused(True, [[7, 1], [9, 2]], shard_map) == (True, True)


def test_a_stamp_has_a_shard_map_if_and_only_if_there_may_be_keys() -> None:
    assert is_refused(False, [[7, 1]], []) == (False, False)
    assert is_refused(True, [[7, 1]], []) == (False, True)
    assert is_refused(False, [[7, 1]], [0] * 1024) == (False, True)


def test_a_table_without_slots_has_no_shard_map() -> None:
    assert not refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], [], [7], []]))
    assert refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], [], [7], [0] * 1024]))


def test_a_table_with_too_many_members_or_slots_is_refused() -> None:
    heavy = [[id, limits.WEIGHT_MAX] for id in range(limits.SLOTS_MAX // limits.WEIGHT_MAX + 1)]
    many = [[id, 1] for id in range(limits.MEMBERS_MAX + 1)]
    for table in (heavy, many):
        assert refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], table, [], []]))
        assert not refused(datagram_of(f.FrameType.TABLE, ["work", "default", [1, 1], table[:-1], [], []]))


@pytest.mark.parametrize("runs", [[1], [2, 1], [1, 3, 3, 4], [5, 6, 1, 2], [1, 2, 4], [-1, 2]])
def test_runs_out_of_order_are_refused(runs: list[int]) -> None:
    assert refused(datagram_of(f.FrameType.NAK, [5, runs, []]))


def test_more_gaps_than_one_question_may_name_are_refused() -> None:
    gaps = [number for number in range(4 * limits.NAK_RANGES_MAX) if number % 4 < 2]
    assert not refused(datagram_of(f.FrameType.NAK, [5, gaps, []]))
    assert refused(datagram_of(f.FrameType.NAK, [5, [*gaps, 10_000, 10_001], []]))


def test_numbers_that_nobody_counts_up_to_are_refused() -> None:
    assert not refused(datagram_of(f.FrameType.ASK_STAMPS, [UINT_MAX, 1, 2]))
    assert refused(datagram_of(f.FrameType.ASK_STAMPS, [UINT_MAX + 1, 1, 2]))
    assert refused(datagram_of(f.FrameType.SENDER_GOODBYE, ["work"], source=UINT_MAX + 1))


def test_other_versions_and_other_protocols_are_refused() -> None:
    good = encode_control(f.SenderGoodbye(SOURCE, "work"), TAG)
    for other in (b"rvq\x00", b"rvq\x02", b"RVQ\x01", b"\x00\x00\x00\x00"):
        assert refused(other + good[4:])
        with pytest.raises(WireError):
            peek(other + good[4:])


def test_data_frames_and_unknown_types_are_no_control_frames() -> None:
    for kind in {*range(256)} - set(SHAPES):
        assert refused(datagram_of(kind, ["work"]))
        assert peek(datagram_of(kind, ["work"])) == (kind, TAG)


def test_peek_needs_a_whole_header() -> None:
    good = encode_control(f.SenderGoodbye(SOURCE, "work"), TAG)
    assert peek(good[: HEADER.size]) == (f.FrameType.SENDER_GOODBYE, TAG)
    for length in range(HEADER.size):
        with pytest.raises(WireError):
            peek(good[:length])


def test_a_data_header_is_read_field_by_field() -> None:
    datagram = DATA_HEADER.pack(MAGIC, 1, 4, 2, TAG, 3, SOURCE, 17, 1.5, 9, 70_000)
    assert read_data_header(datagram + b"body") == f.DataHeader(MAGIC, 1, 4, 2, TAG, 3, SOURCE, 17, 1.5, 9, 70_000)
    for length in range(DATA_HEADER.size):
        with pytest.raises(WireError):
            read_data_header(datagram[:length])


@pytest.mark.parametrize(
    "odd",
    [
        {"sent_at": math.nan},
        {"sent_at": math.inf},
        {"stream": 2**63},
        {"first": 2**63},
        {"done_to": 2**64 - 1},
        {"position": 2**63},
    ],
    ids=repr,
)
def test_a_data_header_with_numbers_out_of_range_is_refused(odd: dict[str, Any]) -> None:
    header = f.DataHeader(MAGIC, 1, 0, 1, TAG, 1, SOURCE, 1, 1.5, 0, 100)
    with pytest.raises(WireError):
        read_data_header(DATA_HEADER.pack(*header._replace(**odd)))


@pytest.mark.parametrize(
    ("to", "what", "value", "counter", "is_refused"),
    [
        (7, f.OrderKind.DRAIN, 0, 0, False),
        (0, f.OrderKind.DRAIN, 0, 0, True),
        (7, f.OrderKind.DRAIN, 1, 0, True),
        (7, f.OrderKind.DRAIN, 0, 1, True),
        (7, f.OrderKind.WEIGHT, 64, 0, False),
        (7, f.OrderKind.WEIGHT, 0, 0, True),
        (7, f.OrderKind.WEIGHT, 65, 0, True),
        (0, f.OrderKind.PAUSE, 0, 1, False),
        (7, f.OrderKind.PAUSE, 0, 1, True),
        (0, f.OrderKind.RESUME, 0, 0, True),
        (0, f.OrderKind.RESUME, 1, 1, True),
        (0, 0, 0, 1, True),
        (0, 5, 0, 1, True),
    ],
)
def test_an_order_has_what_its_kind_needs_and_nothing_else(
    to: int, what: int, value: int, counter: int, is_refused: bool
) -> None:
    body = ["work", "default", to, 99, int(what), value, counter, "ops"]
    assert refused(datagram_of(f.FrameType.ORDER, body)) == is_refused


@pytest.mark.parametrize("outcome", [0, 5, True, "done"])
def test_an_order_has_one_of_the_known_outcomes(outcome: Any) -> None:
    assert refused(datagram_of(f.FrameType.ORDER_DONE, [99, outcome]))
