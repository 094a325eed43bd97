"""Records -> Arrow: bodies, keys and headers. Owns the fast way for bytes and text, and the slow one for all else.

Bytes and text are never touched one by one: Arrow takes them out of the journal's own bytes. Objects, and messages with
keys or headers, are unpacked one by one. Hot.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from rvq.spark.blocks import Array, Messages
from rvq.spark.plain import BYTES, JSON, TEXT, as_bytes, type_of
from rvq.wire.records import PACKED, RAW, Content, read_or_none

_TEXT: Final = {0xD9: 2, 0xDA: 3, 0xDB: 5}
"""The first byte of long texts in msgpack, and the bytes before the text. Short ones: one byte, 0xA0 and the length."""
_SLOW: Final = -1
_BEFORE: Final = np.full(256, _SLOW, np.int64)
_BEFORE[0xA0:0xC0] = 1
_BEFORE[list(_TEXT)] = list(_TEXT.values())

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))


_TYPES: Final = [BYTES, TEXT, JSON]


class Values:
    """The bodies, keys and headers of some messages. What is unpacked for one of them serves all."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        before = _before(messages)
        self._slow = np.flatnonzero(before == _SLOW)
        self._before = before
        self._contents: list[Content | None] | None = None

    @property
    def contents(self) -> list[Content | None]:
        """Of the slow ones."""
        if self._contents is None:
            m = self._messages
            places = zip(
                m.kind[self._slow].tolist(), m.start[self._slow].tolist(), m.end[self._slow].tolist(), strict=True
            )
            self._contents = [read_or_none(kind, bytes(m.data[start:end])) for kind, start, end in places]
        return self._contents

    def bodies(self) -> pa.Array:
        m = self._messages
        if not len(self._slow):
            return spans(m.data, m.start + self._before, m.end)
        slow = pa.array([None if c is None else as_bytes(c.body) for c in self.contents], pa.binary())
        fast = np.flatnonzero(self._before != _SLOW)
        if not len(fast):
            return slow
        plain = spans(m.data, (m.start + self._before)[fast], m.end[fast])
        place = np.empty(len(m), np.int64)
        place[fast] = np.arange(len(fast))
        place[self._slow] = np.arange(len(self._slow)) + len(fast)
        return pa.concat_arrays([plain, slow]).take(pa.array(place))

    def types(self) -> pa.Array:
        """What each body was: bytes, text, or what became JSON."""
        kinds = np.where(self._messages.kind == RAW, 0, 1)
        for place, content in zip(self._slow.tolist(), self.contents, strict=True):
            kinds[place] = 2 if content is None else _TYPES.index(type_of(content.body))
        return pa.array(_TYPES).take(pa.array(kinds))

    def keys(self) -> pa.Array:
        return self._scattered(
            [None if c is None or c.key is None else as_bytes(c.key) for c in self.contents], pa.binary()
        )

    def headers(self) -> pa.Array:
        return self._scattered([_headers(c) for c in self.contents], HEADERS)

    def _scattered(self, slow: list[Any], kind: pa.DataType) -> pa.Array:
        """Only the slow ones have any."""
        count = len(self._messages)
        if slow.count(None) == len(slow):
            return pa.nulls(count, kind)
        place = np.zeros(count, np.int64)
        place[self._slow] = np.arange(len(slow))
        has = np.zeros(count, bool)
        has[self._slow] = True
        return pa.array(slow, kind).take(pa.array(place, mask=~has))


def _before(messages: Messages) -> Array:
    """How many bytes of each record are not its body: 0 for bytes, the length in front of text, or that it is slow."""
    kinds = messages.kind
    if (kinds == RAW).all():
        return np.zeros(len(kinds), np.int64)
    view = np.frombuffer(messages.data, np.uint8)
    before = np.full(len(kinds), _SLOW, np.int64)
    before[kinds == RAW] = 0
    packed = np.flatnonzero((kinds == PACKED) & (messages.end > messages.start))
    start, size = messages.start[packed], (messages.end - messages.start)[packed]
    first = view[start]
    skip = _BEFORE[first]
    # Only if the length that stands there is that of the rest: else let msgpack say what is wrong.
    told = np.full(len(packed), -9, np.int64)  # with what stands before it, no size at all
    for width in (1, 2, 3, 5):
        here = np.flatnonzero((skip == width) & (size >= width))
        if width == 1:
            told[here] = first[here] & 0x1F
        else:
            told[here] = sum(view[start[here] + n].astype(np.int64) << 8 * (width - 1 - n) for n in range(1, width))
    before[packed] = np.where((skip != _SLOW) & (told + skip == size), skip, _SLOW)
    return before


def spans(data: bytes | memoryview, start: Array, end: Array) -> pa.Array:
    """The bytes between these places, which rise and do not overlap, as an array: copied by Arrow, or not at all."""
    count = len(start)
    buffer = pa.py_buffer(data)
    if not count or (start[1:] == end[:-1]).all():
        offsets = np.empty(count + 1, np.int32)
        offsets[:count] = start
        offsets[count] = end[-1] if count else 0
        return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), buffer])
    # What lies between two of them is an element too, for the moment.
    offsets = np.empty(2 * count, np.int32)
    offsets[::2], offsets[1::2] = start, end
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(offsets), buffer])
    return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))


def _headers(content: Content | None) -> list[dict[str, Any]] | None:
    if content is None or not content.headers:
        return None
    return [{"key": name, "value": as_bytes(value)} for name, value in content.headers.items()]
