"""A picture as lines: what is where, how numbers look, and what has a colour."""

from __future__ import annotations

import pytest

from rvq.cli import board
from rvq.cli.board import SORTS, View, body, count, events, everything, head, rate, seconds, slots
from rvq.cli.columns import Line, plain
from tests.cli.pictures import a_group, a_label, a_picture, a_receiver, a_sender, an_event, busy


def texts(lines: list[Line]) -> list[str]:
    return [plain(line) for line in lines]


def styles(lines: list[Line], text: str) -> set[str]:
    return {cell.style for line in lines for cell in line if cell.text.strip() == text}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234, "1,234"), (9_999_999, "9,999,999"), (12_345_678, "12.3M"), (2.5e9, "2.5G"), (3e12, "3.0T")],
)
def test_counts_are_short(value: float, text: str) -> None:
    assert count(value) == text


def test_a_slow_rate_is_told_to_a_tenth() -> None:
    assert (rate(0), rate(0.4), rate(9.94), rate(10.4)) == ("0", "0.4", "9.9", "10")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0ms"),
        (0.012, "12ms"),
        (0.2, "0.2s"),
        (9.9, "9.9s"),
        (12.3, "12s"),
        (150, "2m"),
        (9000, "2h"),
    ],
)
def test_seconds_are_short(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_slots_are_runs() -> None:
    assert (slots([]), slots([4]), slots([0, 1, 2]), slots([0, 1, 5, 7, 8])) == ("-", "4", "0-2", "0-1,5,7-8")


def test_the_head_says_which_bus_and_how_much() -> None:
    first, second = texts(head(busy(), None, "PAUSED"))
    assert first.startswith("rvq top  lo 239.192.0.0/16 port 7400  ") and first.endswith("  PAUSED")
    assert second == "2 labels, 2 groups, 4 receivers, 2 senders  in 482/s, out 420/s, 3 undone"
    trouble = a_picture(a_label(groups=[a_group("g", a_receiver(dead=2, lost=1))]))
    trouble["bus"]["sealed"] = True
    first, second = texts(head(trouble, None))
    assert "port 7400, sealed" in first
    assert second == "1 label, 1 group, 1 receiver, 0 senders  in 0/s, out 120/s, 0 undone, 2 dead, 1 lost"


def test_every_label_has_its_groups_receivers_and_senders() -> None:
    lines = texts(body(busy(), None))
    assert [line for line in lines if not line.startswith(" ")] == ["work", "empty"]
    assert [line for line in lines if line.startswith(" ") and line[1] != " "] == [
        " default  table 3 by 11b2…, 3 slots",
        " mail  table 3 by 11b2…, 1 slot",
    ]
    assert lines[-1] == "  nobody is heard"
    row = next(line for line in lines if line.startswith("  0002…")).split()
    assert row[:12] == ["0002…", "host-a:4712", "in", "1", "1", "50%", "100", "12ms", "9", "0.2s", "0.1s", "0"]
    sender = next(line for line in lines if line.startswith("  5001…")).split()
    assert sender[:10] == ["5001…", "host-b:815", "sending", "241", "3", "25%", "0", "4", "at", "1,801"]


def test_eighty_columns_have_what_matters() -> None:
    lines = texts(body(busy(), 80))
    assert max(map(len, lines)) <= 80
    for titles in ("RECEIVER HOST:PID STATE SLOTS SHARE MSG/S LAG BACKLOG LEASE HEARD", "SENDER HOST:PID STATE MSG/S"):
        assert any(line.split()[: len(titles.split())] == titles.split() for line in lines), titles


def test_one_label_can_be_looked_at_alone() -> None:
    assert texts(body(busy(), 80, View(label="empty"))) == ["empty", "  nobody is heard"]
    assert body(busy(), 80, View(label="unknown")) == []


@pytest.mark.parametrize(
    ("sort", "first"), [("id", "0001…"), ("rate", "0003…"), ("backlog", "0001…"), ("host", "0001…")]
)
def test_receivers_are_sorted(sort: str, first: str) -> None:
    lines = texts(body(busy(), 80, View(sort=sort)))
    assert next(line for line in lines if "…  " in line).split()[0] == first


def test_every_order_can_sort_what_is_not_known_yet() -> None:
    fresh = a_receiver(1, host=None, pid=None, lag=None, lease_age=None, address=None, index=[], state="joining")
    silent = a_sender(1, host=None, pid=None, window=None, stamp_at=None, state="silent")
    picture = a_picture(a_label(groups=[a_group("g", fresh, a_receiver(2), version=[0, "0" * 16])], senders=[silent]))
    for sort in SORTS:
        lines = texts(body(picture, 200, View(sort=sort)))
        assert " g  no table yet" in lines
    row = next(line for line in lines if line.startswith("  0001…")).split()
    assert row[1:5] == ["?", "joining", "-", "1"]


def test_colours_are_for_what_is_not_as_it_should_be() -> None:
    rows = [a_receiver(1), a_receiver(2, state="silent"), a_receiver(3, lag=2.0), a_receiver(4, lost=7)]
    lines = body(a_picture(a_label(groups=[a_group("g", *rows)])), None)
    assert styles(lines, "in") == {""} and styles(lines, "silent") == {"bold red"}
    assert styles(lines, "2.0s") == {"yellow"} and styles(lines, "7") == {"bold red"}
    assert board.STATE_STYLES.keys() <= {"silent", "draining", "joining", "paused", "waiting", "idle"}


def test_a_paused_group_says_so() -> None:
    picture = a_picture(a_label(groups=[a_group("g", a_receiver(state="paused"), paused=True)]))
    assert " g  table 3 by 11b2…, 1 slot PAUSED" in texts(body(picture, None))


def test_the_last_events_are_shown_the_newest_at_the_end() -> None:
    picture = a_picture(events=[an_event(f"number {n}") for n in range(9)])
    assert [line[12:] for line in texts(events(picture, None, 3))] == ["number 6", "number 7", "number 8"]
    assert events(picture, None, 0) == []
    both = a_picture(events=[an_event("one"), an_event("two", label="mail")])
    assert [line[12:] for line in texts(events(both, None, 9))] == ["work: one", "mail: two"]
    assert [line[12:] for line in texts(events(both, None, 9, View(label="mail")))] == ["two"]


def test_everything_is_head_body_and_events() -> None:
    lines = texts(everything(busy()))
    assert lines[0].startswith("rvq top") and "events" in lines and lines[-1].endswith("x")
    assert "events" not in texts(everything(a_picture()))
