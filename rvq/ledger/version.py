"""Which ledgers this rvq can read. Owns the refusal of others, for all databases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvq.errors import LedgerError


def check_version(rows: Sequence[tuple[Any, ...]], version: int, where: str) -> None:
    """LedgerError unless the one row of the version table has this version."""
    if list(rows) != [(version,)]:
        found = ", ".join(str(row[0]) for row in rows) or "none"
        raise LedgerError(
            f"the ledger in {where} has version {found} and this rvq reads {version}: use the rvq that made it, or"
            " another database"
        )
