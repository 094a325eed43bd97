"""What may be a label or a group name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.errors import BadLabel
from rvq.limits import LABEL_BYTES_MAX
from rvq.names import check_group, check_label

both = pytest.mark.parametrize("check", [check_label, check_group])


@both
@pytest.mark.parametrize("name", ["work", "orders.eu", "a b", "Überweisungen", "仕事", "x" * LABEL_BYTES_MAX])
def test_any_printable_text_is_a_name(check: Callable[[object], str], name: str) -> None:
    assert check(name) == name


@both
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "is empty"),
        (None, "NoneType, not str"),
        (b"work", "bytes, not str"),
        (7, "int, not str"),
        ("two\nlines", r"'\\n' at 3: take it out"),
        ("nul\0", r"'\\x00' at 3"),
        ("\x7f", r"'\\x7f' at 0"),
        ("line\u2028separator", r"'\\u2028' at 4"),
        ("half\ud800", r"'\\ud800' at 4"),
        ("x" * (LABEL_BYTES_MAX + 1), "256 bytes long in UTF-8: use at most 255"),
        ("ü" * 128, "256 bytes long in UTF-8: use at most 255"),
    ],
)
def test_anything_else_is_refused_with_what_to_do(check: Callable[[object], str], name: object, words: str) -> None:
    with pytest.raises(BadLabel, match=words):
        check(name)


def test_the_error_says_which_name_it_was() -> None:
    with pytest.raises(BadLabel, match=r"^label "):
        check_label("")
    with pytest.raises(BadLabel, match=r"^group "):
        check_group("")


def test_a_long_name_is_not_repeated_whole_in_its_error() -> None:
    with pytest.raises(BadLabel) as caught:
        check_label("x" * 100_000)
    assert len(str(caught.value)) < 200


@given(st.text(st.characters()) | st.binary() | st.integers())
def test_whatever_is_asked_the_answer_is_the_name_or_a_bad_label(name: object) -> None:
    with suppress(BadLabel):
        assert check_label(name) == name
