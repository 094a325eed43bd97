"""What the tests of data frames share: one sender's words, messages of all sorts, and frames that strangers make."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st

from rvq.wire.batch import Stamped
from rvq.wire.codec import DATA_HEADER, MAGIC
from rvq.wire.frames import FrameType
from rvq.wire.records import make_record

AT = Stamped(
    label_tag=0xC0FFEE07, stamp=2, stream=0x0123456789ABCDEF, first=301, sent_at=1.5, done_to=250, position=70_000
)

shortly = settings(max_examples=80, deadline=None, derandomize=True, database=None)

texts = st.text(st.characters(codec="utf-8"), max_size=20)
plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | texts
    | st.binary(max_size=20)
)
bodies = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts | st.integers(0, 9), inner, max_size=5),
    max_leaves=10,
)
keys = st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=9) | st.binary(min_size=1, max_size=9)
headers = st.none() | st.dictionaries(texts, plain, max_size=3)
records = st.builds(make_record, bodies, keys, headers)
records_raw = st.builds(make_record, st.binary(max_size=20))
records_packed = st.builds(make_record, bodies.filter(lambda body: type(body) is not bytes))
# Few lengths, so that lists of one length come up: of one kind, of two, and with keys.
records_short = st.builds(make_record, st.sampled_from([b"", b"a", b"b", 1, None]))
records_even = st.builds(make_record, st.sampled_from([b"a", b"b", 1, None]))
records_keyed = st.builds(make_record, st.integers(0, 9), st.sampled_from([None, "k", "l"]))
record_lists = st.one_of(
    *(
        st.lists(some, min_size=1, max_size=30)
        for some in (records, records_raw, records_packed, records_short, records_even, records_keyed)
    )
)


def shorts(*values: int) -> bytes:
    """Numbers of 16 bits, as in the tables of a frame."""
    return b"".join(value.to_bytes(2, "big") for value in values)


def data_frame(count: int, flags: int, body: bytes, first: int = 1, kind: int = FrameType.DATA) -> bytes:
    """A header that says this, and the body, whatever it is."""
    return DATA_HEADER.pack(MAGIC, kind, flags, count, 7, 1, 1, first, 1.5, 0, 0) + body


@st.composite
def damaged(draw: st.DrawFn, good: bytes) -> bytes:
    """A good frame with some bytes changed, cut out, put in or cut off."""
    datagram = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(4, len(datagram)))
        end = place + draw(st.sampled_from([1, 1, 1, 1, 2, 0]))
        datagram[place:end] = draw(st.binary(min_size=1, max_size=1) | st.binary(max_size=3))
    return bytes(datagram[: draw(st.integers(0, len(datagram)))] if draw(st.integers(0, 3)) == 3 else datagram)
