"""How a listener is announced. The rest of it is in `test_listen`, with real processes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from rvq.cli.listening import announcement


def table(index: int | None, members: int) -> Any:
    return cast(Any, SimpleNamespace(version=(1, 1), members=tuple(range(members)), index=index))


def test_a_member_says_its_index() -> None:
    assert announcement("work", "default", 0x3F2A << 48, table(1, 3)) == (
        "listening on work (group default) as 3f2a… index 1 of 3"
    )


def test_small_ids_keep_their_zeros() -> None:
    assert announcement("a", "g", 1, table(0, 1)) == "listening on a (group g) as 0000… index 0 of 1"


def test_one_who_is_not_in_the_table_says_so() -> None:
    assert announcement("a", "g", 1, table(None, 2)).endswith("as 0000… and not in its table")
