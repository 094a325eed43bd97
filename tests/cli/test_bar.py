"""The bar as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rvq.cli.bar import render


def test_a_wide_terminal_shows_everything() -> None:
    assert render(80, 12345, 6000, 41234.5, 0.5) == f"[{'#' * 20}{'.' * 20}]  sent 12,345  done 6,000  41,234/s"


def test_without_a_known_end_there_are_only_numbers() -> None:
    assert render(80, 12345, 6000, 41234.5) == "sent 12,345  done 6,000  41,234/s"


def test_a_narrow_terminal_leaves_out_the_bar_first_and_then_numbers_from_the_right() -> None:
    assert render(40, 12345, 6000, 41234.5, 0.5) == "sent 12,345  done 6,000  41,234/s"
    assert render(30, 12345, 6000, 41234.5, 0.5) == "sent 12,345  done 6,000"
    assert render(12, 12345, 6000, 41234.5, 0.5) == "sent 12,345"
    assert render(5, 12345, 6000, 41234.5, 0.5) == ""


@given(
    st.integers(-1, 300),
    st.integers(0, 10**15),
    st.integers(0, 10**15),
    st.floats(0, 1e12),
    st.none() | st.floats(-1, 2),
)
def test_it_never_wraps(columns: int, sent: int, done: int, rate: float, fraction: float | None) -> None:
    assert len(render(columns, sent, done, rate, fraction)) <= max(columns, 0)
