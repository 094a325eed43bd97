"""Tables that fit a width: columns go by rank, and nothing is ever wider."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rvq.cli.columns import Cell, Column, cut, fit, plain

COLUMNS = [Column("NAME"), Column("HOST", 2), Column("COUNT", 1, right=True)]
ROWS = [[Cell("a"), Cell("host-a"), Cell("1")], [Cell("bcd"), Cell("b"), Cell("1,000", "red")]]


def shown(width: int | None, indent: str = "") -> list[str]:
    return [plain(line) for line in fit(COLUMNS, ROWS, width, indent)]


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert shown(None) == ["NAME  HOST    COUNT", "a     host-a      1", "bcd   b       1,000"]


def test_the_columns_of_the_highest_rank_go_first() -> None:
    assert shown(18) == ["NAME  COUNT", "a         1", "bcd   1,000"]
    assert shown(10) == ["NAME", "a", "bcd"]


def test_what_must_be_there_is_cut() -> None:
    assert shown(3) == ["NA…", "a …", "bc…"]


def test_styles_stay_with_their_cells() -> None:
    line = fit(COLUMNS, ROWS, None)[2]
    assert [cell.style for cell in line if cell.text.strip() == "1,000"] == ["red"]


@given(st.lists(st.text(st.characters(codec="ascii", categories=["L"]), max_size=9), max_size=5), st.integers(0, 30))
def test_no_line_is_wider_than_it_may_be(texts: list[str], width: int) -> None:
    assert len("".join(cell.text for cell in cut(tuple(map(Cell, texts)), width))) <= width
    rows = [[Cell(text), Cell(text), Cell(text)] for text in texts]
    assert all(len("".join(cell.text for cell in line)) <= width for line in fit(COLUMNS, rows, width, "  "))


def test_what_fits_is_left_as_it_is() -> None:
    assert cut((Cell("abc"),), 3) == cut((Cell("abc"),), None) == (Cell("abc"),)
