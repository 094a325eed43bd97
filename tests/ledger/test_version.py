"""Versions of ledgers."""

from __future__ import annotations

from typing import Any

import pytest

from rvq.errors import LedgerError
from rvq.ledger.version import check_version


def test_the_version_that_is_read_is_taken() -> None:
    check_version([(1,)], 1, "work.db")


@pytest.mark.parametrize(("rows", "found"), [([(2,)], "2"), ([], "none"), ([(1,), (2,)], "1, 2")])
def test_any_other_is_refused_by_name(rows: Any, found: str) -> None:
    with pytest.raises(LedgerError, match=f"in work.db has version {found} and this rvq reads 1: use the rvq"):
        check_version(rows, 1, "work.db")
