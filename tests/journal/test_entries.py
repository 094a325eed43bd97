"""Entries and their bounds."""

from __future__ import annotations

from math import inf, nan

import pytest

from rvq.journal.entries import ROWS_MAX, Entry, check_entry, pack_source, read_source
from rvq.limits import JOURNAL_ENTRY_BYTES_MAX


def test_an_entry_within_bounds_tells_its_size() -> None:
    assert check_entry(Entry(1, 0, None, 0.0, 0, b"abc")) == 3
    assert check_entry(Entry(255, 255, ("10.0.0.1", 1), -1.0, ROWS_MAX, memoryview(b""))) == 0


@pytest.mark.parametrize(
    "bad",
    [
        Entry(256, 0, None, 0.0, 0, b""),
        Entry(-1, 0, None, 0.0, 0, b""),
        Entry(1, 256, None, 0.0, 0, b""),
        Entry(1, 0, None, nan, 0, b""),
        Entry(1, 0, None, inf, 0, b""),
        Entry(1, 0, None, 0.0, -1, b""),
        Entry(1, 0, None, 0.0, ROWS_MAX + 1, b""),
        Entry(1, 0, None, 0.0, 0, bytes(JOURNAL_ENTRY_BYTES_MAX + 1)),
    ],
)
def test_what_does_not_fit_the_format_is_refused_before_it_reaches_the_disk(bad: Entry) -> None:
    with pytest.raises(ValueError, match="entry"):
        check_entry(bad)


@pytest.mark.parametrize("source", [("127.0.0.1", 5000), ("255.255.255.255", 65_535), ("0.0.0.0", 1)])
def test_a_source_comes_back(source: tuple[str, int]) -> None:
    assert read_source(*pack_source(source)) == source


@pytest.mark.parametrize("source", [None, ("::1", 5000), ("host", 1), ("1.2.3.256", 1), ("1.2.3", 1), ("1.2.3.4", 0)])
def test_a_source_that_is_not_ipv4_is_dropped(source: tuple[str, int] | None) -> None:
    assert pack_source(source) == (0, 0)
    assert read_source(0, 0) is None
