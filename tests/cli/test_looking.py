"""What keys change, and which lines fit a screen of any size."""

from __future__ import annotations

import pytest

from rvq.cli.board import SORTS
from rvq.cli.columns import plain
from rvq.cli.looking import HELP, Looking, keys_of
from tests.cli.pictures import a_label, a_picture, an_event, busy

UP, DOWN, PAGE_UP, PAGE_DOWN = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~"


def press(looking: Looking, *keys: str) -> Looking:
    for key in keys:
        looking.press(key, ["empty", "work"], 10)
    return looking


def shown(looking: Looking, width: int = 80, height: int = 24, receivers: int = 3) -> list[str]:
    lines = looking.compose(busy(receivers), width, height)
    assert len(lines) == height and all(sum(len(cell.text) for cell in line) <= width for line in lines)
    return [plain(line) for line in lines]


def test_keys_come_one_by_one_and_arrows_whole() -> None:
    assert keys_of(f"q{UP}s{PAGE_DOWN}\x1bOBj") == ["q", UP, "s", PAGE_DOWN, "\x1bOB", "j"]
    assert keys_of("") == [] and keys_of("\x1b") == ["\x1b"]


def test_q_ends_it_and_strange_keys_do_nothing() -> None:
    assert press(Looking(), "Q").over and press(Looking(), "q").over
    looking = press(Looking(), "x", "\x1b", "ü", "\n")
    assert (looking.over, looking.paused, looking.top, looking.view) == (False, False, 0, Looking().view)


def test_s_goes_through_the_orders_and_l_through_the_labels() -> None:
    looking = Looking()
    sorts = [press(looking, "s").view.sort for _ in SORTS]
    assert sorts == [*list(SORTS)[1:], "id"]
    assert [press(looking, "l").view.label for _ in range(3)] == ["empty", "work", None]
    press(looking, "l")
    looking.press("l", ["other"], 10)
    assert looking.view.label is None, "its label is gone"


def test_p_pauses_and_says_so() -> None:
    looking = press(Looking(), "p", "s")
    assert looking.paused and shown(looking)[0].endswith("by rate PAUSED")
    assert not press(looking, " ").paused


@pytest.mark.parametrize("width", [20, 40, 80, 140, 300])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 10, 24, 40, 100])
@pytest.mark.parametrize("receivers", [0, 3, 200])
def test_every_screen_is_filled_exactly(width: int, height: int, receivers: int) -> None:
    lines = shown(Looking(), width, height, receivers)
    if height >= 3:
        assert lines[-1][:10] == HELP[:10]


def test_what_does_not_fit_is_scrolled_to() -> None:
    looking = Looking()
    first = shown(looking, receivers=50)
    assert any(line.startswith("  … ") and line.endswith(" more lines: ↓") for line in first)
    assert "events" in first, "they keep their place"
    press(looking, DOWN, DOWN, "j", UP)
    assert shown(looking, receivers=50)[2] == first[4]
    press(looking, *[PAGE_DOWN] * 50)
    last = shown(looking, receivers=50)
    assert "  (end)" in last and any("nobody is heard" in line for line in last)
    press(looking, *[PAGE_UP] * 50)
    assert shown(looking, receivers=50)[2:8] == first[2:8]


def test_where_everything_fits_nothing_is_scrolled() -> None:
    looking = press(Looking(), *[DOWN] * 9)
    assert shown(looking, height=60)[2] == "work" and looking.top == 0


def test_an_empty_bus_says_so() -> None:
    lines = [plain(line) for line in Looking().compose(a_picture(), 80, 24)]
    assert "nobody is heard on this bus yet" in lines and "events" not in lines


def test_events_have_what_room_is_left() -> None:
    picture = a_picture(a_label(), events=[an_event(f"number {n}") for n in range(99)])
    lines = [plain(line) for line in Looking().compose(picture, 80, 40)]
    assert lines[-2].endswith("number 98") and sum("number" in line for line in lines) > 30
