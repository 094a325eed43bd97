"""The count of rvq-send."""

from __future__ import annotations

from typing import Any, cast

from rvq.cli.account import Account
from tests.cli.fakes import FakeSender


def test_nothing_was_sent_at_first() -> None:
    assert Account(5.0).summary(5.0) == "sent 0, done 0, undone 0 in 0.00 s"


async def test_what_is_not_undone_is_done() -> None:
    sender = FakeSender()
    await sender.send_many(range(10_000))
    sender.undone = 1
    account = Account(5.0)
    account.take(cast(Any, sender))
    assert account.done == 9_999
    assert account.summary(5.42) == "sent 10000, done 9999, undone 1 in 0.42 s"
