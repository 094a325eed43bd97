"""What dead letters look like."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rvq.cli.letters import Found, cut, lines_of_json, one_line, page_of, table_of, width_of
from rvq.dead import DeadLetter

NOW = datetime(2030, 1, 31, 12, 0, 5).astimezone()
AT = NOW.timestamp() - 5

LETTER = DeadLetter(
    id="00000000000000ff-7",
    label="work",
    group="default",
    body={"job": 1},
    key="user-7",
    headers={"trace": "a1"},
    error="ValueError: no",
    traceback="Traceback:\n  line\nValueError: no\n",
    attempts=5,
    sent_at=AT - 60,
    died_at=AT,
    first_owner="aa",
    last_owner="bb",
)


def message(body: Any, label: str = "work.dead") -> Any:
    return cast(
        Any, SimpleNamespace(body=body, id="0000000000000001-1", label=label, key=None, headers=None, sent_at=AT)
    )


def found(**changes: Any) -> Found:
    return Found.of(message(replace(LETTER, **changes).as_body()))


def by_hand(body: Any) -> Found:
    return Found.of(message(body))


def test_a_letter_is_known_by_the_message_that_died() -> None:
    assert found().letter == LETTER
    assert (found().id, found().at) == ("00000000000000ff-7", AT)


@pytest.mark.parametrize(
    "body",
    [None, "text", b"\xff", [1], {"id": "x"}, {**LETTER.as_body(), "id": 5}, {**LETTER.as_body(), "label": "other"}],
)
def test_whatever_else_is_there_is_no_letter_and_breaks_nothing(body: Any) -> None:
    one = by_hand(body)
    assert (one.letter, one.id, one.at) == (None, "0000000000000001-1", AT)
    assert "not a dead letter" in table_of([one], 80, NOW)
    assert "not a dead letter: somebody sent it to work.dead by hand" in page_of(one)
    assert json.loads(lines_of_json([one]))["letter"] is False


@pytest.mark.parametrize("at", [1e300, -1e300, float("nan")])
def test_times_that_are_none_are_shown_all_the_same(at: float) -> None:
    assert "?" in table_of([found(died_at=at)], 100, NOW)
    assert "s since 1970" in page_of(found(died_at=at))


def test_the_table_has_a_line_each() -> None:
    shown = table_of([found(), found(key=None, body="x", died_at=AT - 86_400), by_hand("y")], None, NOW)
    assert shown.splitlines() == [
        "ID                  TRIES  WHEN        KEY     ERROR              BODY",
        '00000000000000ff-7  5      12:00:00    user-7  ValueError: no     {"job":1}',
        "00000000000000ff-7  5      2030-01-30  -       ValueError: no     x",
        "0000000000000001-1  -      12:00:00    -       not a dead letter  y",
    ]


@pytest.mark.parametrize("columns", [10, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("text", ["x" * 500, "日本語" * 100, "a\nb\x1b[31m" * 50])
def test_no_line_is_wider_than_the_terminal(columns: int, text: str) -> None:
    shown = table_of([found(body=text), found(error=text), found(key=text), by_hand(text)], columns, NOW)
    lines = shown.splitlines()
    assert len(lines) == 5 and max(map(width_of, lines)) <= columns
    assert "…" in shown and "\x1b" not in shown


def test_what_one_text_does_not_need_the_other_gets() -> None:
    short_error = table_of([found(error="no", body="x" * 500)], 100, NOW).splitlines()[1]
    short_body = table_of([found(error="x" * 500, body="no")], 100, NOW).splitlines()[1]
    assert short_error.count("x") > 40 and short_body.count("x") > 40
    both = table_of([found(error="x" * 500, body="y" * 500)], 100, NOW).splitlines()[1]
    assert abs(both.count("x") - both.count("y")) <= 1


def test_the_page_has_everything() -> None:
    lines = page_of(found()).splitlines()
    for start, end in [
        ("id ", "00000000000000ff-7"),
        ("label ", "work (group default)"),
        ("attempts ", "5"),
        ("first owner ", "aa"),
        ("last owner ", "bb"),
        ("key ", "user-7"),
        ("headers ", '{"trace":"a1"}'),
        ("error ", "ValueError: no"),
    ]:
        assert any(line.startswith(start) and line.endswith(f" {end}") for line in lines), start
    assert any(line.startswith("sent         2030-01-31 11:59:00.000 ") for line in lines)
    assert any(line.startswith("died         2030-01-31 12:00:00.000 ") for line in lines)
    assert lines[-6:] == ["traceback", "    Traceback:", "      line", "    ValueError: no", "body", '    {"job":1}']


def test_the_page_of_a_text_keeps_its_lines_and_nothing_that_moves_the_cursor() -> None:
    assert page_of(found(body="a\n\tb\x1b[2J\r", traceback="")).endswith("body\n    a\n            b\\x1b[2J\\r\n")
    assert "\nbody\n    b'\\xff'\n" in page_of(found(body=b"\xff"))


def test_a_body_that_was_too_large_is_not_shown_as_none() -> None:
    one = Found.of(message(LETTER.without_body(17).as_body()))
    assert "its body was too large: 17" in page_of(one) and "\nbody\n" not in page_of(one)


def test_scripts_get_every_field() -> None:
    first, second = map(json.loads, lines_of_json([found(), by_hand({"a": b"\xff"})]).splitlines())
    assert first == {"letter": True, **LETTER.as_body()}
    assert second["id"] == "0000000000000001-1" and second["body"] == {"a": "/w=="}


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 6, "日本語"), ("日本語", 5, "日本…"), ("日本語", 4, "日…")],
)
def test_a_text_is_cut_by_columns_and_not_by_characters(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [("a\nb", "a\\nb"), (b"text", "text"), (b"\xff", "b'\\xff'"), (None, "null"), ("ö", "ö")]
)
def test_anything_is_one_line(value: Any, shown: str) -> None:
    assert one_line(value) == shown
