"""When what was sent is due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rvq.cli.dues import Dues, Timing, clock

NOON = datetime(2030, 1, 31, 12).astimezone().timestamp()


@pytest.mark.parametrize(
    ("timing", "options", "due_at"),
    [
        (Timing(), {}, 100.0),
        (Timing(delay=0.0), {}, 100.0),
        (Timing(delay=5.0, ttl=9.0), {"delay": 5.0, "ttl": 9.0}, 105.0),
        (Timing(urgent=True), {"urgent": True}, 100.0),
        (Timing(due=datetime.fromtimestamp(7, UTC)), {"due": datetime.fromtimestamp(7, UTC)}, 7.0),
    ],
)
def test_only_what_was_given_is_sent_along(timing: Timing, options: dict[str, object], due_at: float) -> None:
    assert timing.options() == options
    assert timing.due_at(100.0) == due_at


def test_what_is_not_due_is_counted_until_it_is() -> None:
    dues = Dues()
    dues.add(10.0, 15.0, 3)
    dues.add(11.0, 11.0, 7)
    dues.add(12.0, 17.0, 2)
    assert [dues.early(now) for now in (12.0, 14.9, 15.0, 16.9, 17.0)] == [5, 5, 2, 2, 0]


def test_words_name_the_last_and_do_not_change_while_others_come_up() -> None:
    dues = Dues()
    assert dues.words(NOON) is None
    dues.add(NOON, NOON + 5, 1)
    dues.add(NOON, NOON + 65, 1)
    assert dues.words(NOON) == dues.words(NOON + 6) == "what is left is due later, all of it by 12:01:05"
    assert dues.words(NOON + 65) is None


def test_another_day_is_named() -> None:
    assert clock(NOON, NOON + 1) == "12:00:01"
    assert clock(NOON, NOON + 86_400) == "2030-02-01 12:00:00"
