"""Lines to bodies and back."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.cli.bodies import BadLine, LineReader, json_of, line_of, lines_of, meta_lines_of, texts_of
from rvq.cli.command import WrongUse
from rvq.message import Message


def message(body: Any, **facts: Any) -> Message:
    standard = {
        "id": "00000000000000ff-7",
        "key": None,
        "headers": None,
        "label": "work",
        "group": "default",
        "sender": 255,
        "sequence": 7,
        "sent_at": 1.5,
        "due_at": None,
        "ttl": None,
        "urgent": False,
        "attempt": 1,
        "redelivered": False,
        "receiver_index": 1,
        "lane": 2,
        "shard": 848,
    }
    return cast(Message, SimpleNamespace(body=body, **(standard | facts)))


# --- from lines ---


def test_lines_are_texts() -> None:
    assert texts_of("eins\n\nzwölf\r\nx y".encode()) == ["eins", "", "zwölf\r", "x y"]


def test_only_newlines_end_lines() -> None:
    assert texts_of("a\x0bb\u2028c\x85d".encode()) == ["a\x0bb\u2028c\x85d"]


def test_what_is_not_utf8_goes_as_bytes_and_the_rest_as_text() -> None:
    assert texts_of(b"good\n\xff\xfe\nalso") == ["good", b"\xff\xfe", "also"]


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line), min_size=1))
def test_every_line_comes_back_as_it_was(lines: list[bytes]) -> None:
    assert [line_of(body) for body in texts_of(b"\n".join(lines))] == lines


def test_one_key_is_everybodys() -> None:
    assert LineReader(key="k").read_run(b"a\nb") == [("k", ["a", "b"])]


def test_arguments_may_have_newlines_in_them() -> None:
    assert LineReader().read_each([b"a\nb", b""]) == [(None, ["a\nb", ""])]


def test_json_lines_are_objects() -> None:
    assert LineReader(as_json=True).read_run(b'{"a":1}\n [2, null]\n"x"\r\n3.5') == [
        (None, [{"a": 1}, [2, None], "x", 3.5])
    ]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"{", "is not JSON: Expecting property name .* at column 2"),
        (b"", "is not JSON: Expecting value at column 1"),
        (b"1 2", "is not JSON: Extra data at column 3"),
        (b'"\xff"', "is not JSON: it is not UTF-8 at byte 2"),
        (b"NaN", "NaN is not in JSON"),
        (b"[" * 100_000, "cannot be read as JSON: .*recursion"),
        (b"9" * 5000, "cannot be read as JSON"),
    ],
)
def test_a_bad_line_is_named_by_its_number(bad: bytes, words: str) -> None:
    reader = LineReader(as_json=True)
    reader.read_run(b"1\n2")
    with pytest.raises(WrongUse, match=rf"^line 4 .*{words}") as caught:
        reader.read_run(b"3\n" + bad)
    assert len(str(caught.value)) < 300
    assert isinstance(caught.value, BadLine) and caught.value.before == [(None, [3])]


def test_a_bad_argument_is_named_by_its_number() -> None:
    with pytest.raises(WrongUse, match=r"^TEXT 2 is not JSON"):
        LineReader(as_json=True, what="TEXT").read_each([b"1", b"x"])


def test_keys_come_from_a_field_and_neighbours_stay_together() -> None:
    reader = LineReader(as_json=True, key_field="user")
    runs = reader.read_run(b'{"user":"a"}\n{"user":"a","n":1}\n{"user":7}\n{"user":"a"}')
    assert runs == [("a", [{"user": "a"}, {"user": "a", "n": 1}]), ("7", [{"user": 7}]), ("a", [{"user": "a"}])]


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[1]", b'"user"', b'{"user":null}', b'{"user":""}', b'{"user":true}', b'{"user":1.5}', b'{"user":{}}'],
)
def test_a_line_without_a_usable_key_is_refused(line: bytes) -> None:
    with pytest.raises(WrongUse, match=r"^line 1 has .*'user'"):
        LineReader(as_json=True, key_field="user").read_run(line)


# --- to lines ---


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("text", b"text"),
        ("zwölf", "zwölf".encode()),
        (b"\xff\x00", b"\xff\x00"),
        (None, b"null"),
        (True, b"true"),
        (5, b"5"),
        ({"a": [1, "ö"]}, '{"a":[1,"ö"]}'.encode()),
        ({"raw": b"\xff"}, b'{"raw":"/w=="}'),
        ({1: "x", None: "y", b"\xff": "z", (1, 2): "t"}, b'{"1":"x","null":"y","/w==":"z","[1,2]":"t"}'),
        ([float("nan"), float("inf"), 1.5], b"[null,null,1.5]"),
        ([{1, 2}], b'["{1, 2}"]'),
        ("\ud800", b"\\ud800"),
    ],
)
def test_a_body_is_one_line(body: Any, line: bytes) -> None:
    assert line_of(body) == line


def test_each_message_is_on_a_line_of_its_own() -> None:
    assert lines_of([message("a"), message("b")]) == b"a\nb\n"
    assert lines_of([message("a"), message(b"\xff"), message({"x": 1})]) == b'a\n\xff\n{"x":1}\n'


def test_with_meta_everything_is_there() -> None:
    lines = meta_lines_of([message({"a": 1}, key="k", headers={"trace": "a1"}), message(b"\xff\n", sender=2**64 - 1)])
    first, second = (json.loads(line) for line in lines.decode().splitlines())
    assert first == {
        "id": "00000000000000ff-7",
        "key": "k",
        "headers": {"trace": "a1"},
        "label": "work",
        "group": "default",
        "sender": "00000000000000ff",
        "sequence": 7,
        "sent_at": 1.5,
        "due_at": None,
        "ttl": None,
        "urgent": False,
        "attempt": 1,
        "redelivered": False,
        "receiver_index": 1,
        "lane": 2,
        "shard": 848,
        "body": {"a": 1},
    }
    assert second["sender"] == "f" * 16
    assert base64.b64decode(second["body"]) == b"\xff\n"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.binary(), inner),
)


@given(json_values)
def test_anything_that_can_be_sent_is_one_line_of_valid_json(value: Any) -> None:
    text = json_of(value)
    assert "\n" not in text
    LineReader(as_json=True).read_run(text.encode(errors="backslashreplace"))
