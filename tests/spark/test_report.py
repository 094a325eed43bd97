"""The report shows the verdict, what was found and the plots, and needs nothing from outside."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from rvq.spark.audit import Audit, Finding
from rvq.spark.report import audit_page, stats_page
from tests.spark.writing import NOW

START = datetime.fromtimestamp(NOW, UTC)
NAMES = ("inserted", "routed", "emitted", "acked", "retried", "dead")


def rows(receivers: int = 3) -> list[dict[str, Any]]:
    found = []
    for n in range(10):
        window = START + timedelta(seconds=10 * n)
        nobody = {"window": window, "label": "work", "group": None, "receiver": None, "p50_ms": None, "p99_ms": None}
        found.append(nobody | dict.fromkeys(NAMES, 0) | {"inserted": 100})
        for id in range(receivers):
            own = {"group": "default", "receiver": id, "inserted": 0, "acked": 30 + id, "p50_ms": 2.0, "p99_ms": 9.0}
            found.append(nobody | dict.fromkeys(NAMES, 0) | own)
    return found


def test_a_page_needs_nothing_from_outside() -> None:
    page = stats_page("/j", rows(), [(NOW + 15, "work, group default: 3 receivers")], 10.0)
    assert not re.search(r"(src|href)=|url\(|@import|<script", page)
    assert page.count("<svg") == 3
    assert "work, group default: 3 receivers" in page


def test_rates_are_per_second() -> None:
    assert ">10<" in stats_page("/j", rows(1), (), 10.0), "100 in windows of 10 s"


def test_many_receivers_are_shown_together() -> None:
    assert "4 others" in stats_page("/j", rows(12))


def test_an_audit_says_its_verdict_and_what_was_found() -> None:
    good = audit_page("/j", Audit(Counter(recorded=5, done=5)))
    assert "nothing lost, nothing done twice" in good
    finding = Finding("work", "default", 7, 3, 3, 1, "done twice", (0xA, 0xB))
    bad = audit_page("/j", Audit(Counter({"recorded": 5, "done twice": 1}), [finding] * 300, {0xA: 2}))
    assert "not everything was done once" in bad
    assert f"{0xA:016x} {0xB:016x}" in bad
    assert "and 100 more" in bad
    assert f"{0xA:016x} (2)" in bad


def test_names_cannot_break_the_page() -> None:
    evil = [row | {"label": "<script>"} for row in rows()]
    assert "<script" not in stats_page("<script>", evil)
