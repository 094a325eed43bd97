"""Marks as rows."""

from __future__ import annotations

from typing import Any

import pytest

from rvq.errors import BadLabel, LedgerError
from rvq.ledger.mark import Mark, row_of


@pytest.mark.parametrize(
    ("number", "stored"),
    [(0, 0), (1, 1), ((1 << 63) - 1, (1 << 63) - 1), (1 << 63, -(1 << 63)), ((1 << 64) - 1, -1)],
)
def test_numbers_of_64_bits_fit_those_of_databases(number: int, stored: int) -> None:
    assert row_of(Mark("work", "default", number, number)) == ("work", "default", stored, stored)


@pytest.mark.parametrize("number", [-1, 1 << 64, 1.0, "1", None, True])
def test_other_numbers_are_refused(number: Any) -> None:
    with pytest.raises(LedgerError, match=r"sender .* is not a number of 64 bits"):
        row_of(Mark("work", "default", number, 1))
    with pytest.raises(LedgerError, match=r"sequence .* is not a number of 64 bits"):
        row_of(Mark("work", "default", 1, number))


def test_names_are_those_that_the_bus_takes() -> None:
    with pytest.raises(BadLabel, match="label"):
        row_of(Mark("", "default", 1, 1))
    with pytest.raises(BadLabel, match="group"):
        row_of(Mark("work", "a\tb", 1, 1))
