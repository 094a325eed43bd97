"""Names on disk: safe for any label, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.journal.places import (
    NAME_BYTES_MAX,
    SegmentName,
    index_path,
    label_folder,
    label_of_folder,
    new_path,
    part_at,
    part_end,
    part_of_folder,
)

labels = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1).filter(
    lambda label: len(label.encode()) <= 255
)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(labels)
def test_any_label_is_a_safe_name_that_comes_back(label: str) -> None:
    name = label_folder(label)
    assert len(name.encode()) <= NAME_BYTES_MAX
    assert name.isascii() and "/" not in name
    assert label_of_folder(name) in (label, None)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("work", "label=work"),
        ("a/b", "label=a%2Fb"),
        ("..", "label=.."),
        ("~x", "label=%7Ex"),
        ("é=", "label=%C3%A9%3D"),
    ],
)
def test_labels_are_quoted_like_this(label: str, name: str) -> None:
    assert label_folder(label) == name
    assert label_of_folder(name) == label


def test_labels_that_are_too_long_when_quoted_stay_apart() -> None:
    one, two = label_folder("é" * 127), label_folder("é" * 126 + "è")
    assert one != two
    assert label_of_folder(one) is label_of_folder(two) is None
    assert "~" in one and len(one) <= NAME_BYTES_MAX
    assert label_folder("x" * 249).endswith("x") and label_of_folder(label_folder("x" * 249)) == "x" * 249
    assert label_of_folder(label_folder("x" * 250)) is None


def test_a_segment_has_one_name() -> None:
    name = SegmentName("2026092113", 0xAB, 12)
    assert str(name) == "part=2026092113/00000000000000ab-00000012.rvqj"
    assert SegmentName.parse(str(name)) == name
    assert SegmentName.parse(str(name._replace(counter=123_456_789))) == name._replace(counter=123_456_789)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "part=2026092113",
        "part=x/00000000000000ab-00000012.rvqj",
        "part=2026092113/00000000000000ab-00000012.rvqj.idx",
    ],
)
def test_what_names_no_segment_is_none(text: str) -> None:
    assert SegmentName.parse(text) is None


def test_a_part_is_an_hour_of_utc() -> None:
    assert part_at(0) == "1970010100"
    assert part_at(3599.9) == "1970010100"
    assert part_at(3600) == "1970010101"
    assert part_end("1970010101") == 7200
    assert part_of_folder("part=1970010101") == "1970010101"
    assert part_of_folder("part=197001010") is None


def test_what_belongs_to_a_segment_is_beside_it() -> None:
    assert index_path(Path("a/b.rvqj")) == Path("a/b.rvqj.idx")
    assert new_path(Path("a/b.rvqj")) == Path("a/b.rvqj.new")
