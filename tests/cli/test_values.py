"""What options accept."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from rvq.cli import values


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (values.count, "1", 1),
        (values.count, "1000000", 1_000_000),
        (values.weight, "64", 64),
        (values.seconds, "0", 0.0),
        (values.seconds, "1.5", 1.5),
        (values.seconds_above_0, "0.1", 0.1),
        (values.rate, "0.5", 0.5),
        (values.filled, "user-7", "user-7"),
    ],
)
def test_what_makes_sense_is_taken(kind: Callable[[str], object], text: str, value: object) -> None:
    assert kind(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (values.count, "0"),
        (values.count, "-3"),
        (values.count, "1.5"),
        (values.count, "many"),
        (values.weight, "0"),
        (values.weight, "65"),
        (values.seconds, "-1"),
        (values.seconds, "nan"),
        (values.seconds, "inf"),
        (values.seconds, "soon"),
        (values.seconds_above_0, "0"),
        (values.rate, "0"),
        (values.rate, "-5"),
        (values.rate, "1e999"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_to_give(kind: Callable[[str], object], text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"'{text}' is .*: give "):
        kind(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2001-09-09T01:46:40Z", 1_000_000_000),
        ("2001-09-09T03:46:40+02:00", 1_000_000_000),
        ("2001-09-09 01:46:40.5+00:00", 1_000_000_000.5),
    ],
)
def test_a_moment_is_the_same_for_everybody(text: str, at: float) -> None:
    assert values.moment(text).timestamp() == at


@pytest.mark.parametrize(
    ("text", "why"),
    [("soon", "is not a time in ISO 8601"), ("2001-09-09T01:46:40", "has no time zone"), ("2001-09-09", "has no time")],
)
def test_a_moment_of_which_nobody_knows_when_it_is_is_refused(text: str, why: str) -> None:
    with pytest.raises(ArgumentTypeError, match=rf"^'{text}' {why}.*: give a day and time with its zone"):
        values.moment(text)


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="is empty"):
        values.filled("")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (values.span, "500ms", 0.5),
        (values.span, "1.5s", 1.5),
        (values.span, "2m", 120.0),
        (values.span, "12h", 43_200.0),
        (values.span, "7d", 604_800.0),
        (values.sync, "batch", "batch"),
        (values.sync, "never", "never"),
        (values.sync, "100ms", 0.1),
        (values.factor, "2.5", 2.5),
        (values.identity, "3f2a1b0c9d8e7f60", 0x3F2A1B0C9D8E7F60),
        (values.run, "7", (7, 7)),
        (values.run, "100-200", (100, 200)),
    ],
)
def test_what_journals_need_is_taken(kind: Callable[[str], object], text: str, value: object) -> None:
    assert kind(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (values.span, "7"),
        (values.span, "d"),
        (values.span, "0s"),
        (values.span, "-1s"),
        (values.span, "7 weeks"),
        (values.sync, "always"),
        (values.factor, "0"),
        (values.identity, "-1"),
        (values.identity, "1" * 17),
        (values.run, "0"),
        (values.run, "5-4"),
        (values.run, "5-"),
    ],
)
def test_what_makes_no_sense_for_journals_is_refused(kind: Callable[[str], object], text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="give "):
        kind(text)
