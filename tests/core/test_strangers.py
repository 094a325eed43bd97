"""Strangers are counted all, and named once, and not for ever."""

from __future__ import annotations

from rvq import limits
from rvq.core.stats import Stats
from rvq.core.strangers import PLAIN_HERE_SEALED, STRANGER, Strangers


def test_each_is_named_once_and_counted_always() -> None:
    stats, events = Stats(), list[str]()
    strangers = Strangers(stats, events)
    for _ in range(3):
        strangers.note(("10.0.0.5", 4242), PLAIN_HERE_SEALED)
        strangers.note("r1", PLAIN_HERE_SEALED)
    assert stats.strangers == 6
    assert [event.split(":")[0] for event in events] == ["stranger at 10.0.0.5", "stranger at r1"]
    assert all(event.startswith(STRANGER) for event in events) and "10.0.0.5:4242" in events[0]


def test_whoever_forges_addresses_does_not_fill_the_log() -> None:
    stats, events = Stats(), list[str]()
    strangers = Strangers(stats, events)
    for port in range(10_000):
        strangers.note(("10.0.0.5", port), PLAIN_HERE_SEALED)
    assert stats.strangers == 10_000
    assert len(events) == limits.STRANGERS_NAMED_MAX + 1 and "counts on" in events[-1]
