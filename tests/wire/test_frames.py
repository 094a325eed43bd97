"""What frames are called and how they compare. Their bytes are in test_codec and test_batch."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import get_args

import pytest

from rvq.wire.frames import (
    ID_BITS,
    NO_PAUSE,
    NO_VERSION,
    Control,
    DataFlag,
    FrameType,
    Goodbye,
    Member,
    Order,
    OrderKind,
    OrderOutcome,
    Outcome,
    Pause,
    Version,
    label_tag,
)

CONTROL_FRAMES = get_args(Control)


def test_the_numbers_of_frame_types_never_change() -> None:
    assert {kind.name: kind.value for kind in FrameType} == {
        "DATA": 1,
        "FRAGMENT": 2,
        "TAIL": 3,
        "SENDER_ALIVE": 16,
        "STAMP": 17,
        "PROGRESS": 18,
        "SENDER_GOODBYE": 19,
        "ASK_TABLE": 20,
        "ALIVE": 32,
        "TABLE": 33,
        "REPORT": 34,
        "NAK": 35,
        "ASK_STAMPS": 36,
        "ASK_PROGRESS": 37,
        "GOODBYE": 38,
        "HAND_OVER": 39,
        "HANDLED": 40,
        "ABOUT": 48,
        "PEERS": 49,
        "ORDER": 64,
        "ORDER_DONE": 65,
    }


def test_the_flags_of_data_frames_never_change() -> None:
    assert {flag.name: flag.value for flag in DataFlag} == {
        "RAW": 1,
        "MIXED": 2,
        "KEYED": 4,
        "EVEN": 8,
        "PADDED": 16,
        "URGENT": 32,
    }


def test_the_numbers_of_outcomes_never_change() -> None:
    assert {outcome.name: outcome.value for outcome in Outcome} == {
        "ACKED": 1,
        "DEAD": 2,
        "EXPIRED": 3,
        "RETRIED": 4,
        "HANDED_OVER": 5,
        "UNREADABLE": 6,
    }


def test_the_numbers_of_orders_never_change() -> None:
    assert {kind.name: kind.value for kind in OrderKind} == {"DRAIN": 1, "WEIGHT": 2, "PAUSE": 3, "RESUME": 4}
    assert {outcome.name: outcome.value for outcome in OrderOutcome} == {
        "CARRIED_OUT": 1,
        "WAS_SO": 2,
        "REFUSED": 3,
        "OVERRULED": 4,
    }


def test_of_two_words_on_a_pause_the_later_order_counts() -> None:
    assert NO_PAUSE < Pause(1, 5, True) < Pause(1, 9, False) < Pause(2, 1, True)
    assert Order(7, "work", "g", 0, 1, OrderKind.PAUSE, 0, 3, "ops").pause == Pause(3, 7, True)
    assert Order(7, "work", "g", 0, 1, OrderKind.RESUME, 0, 4, "ops").pause == Pause(4, 7, False)


def test_versions_compare_by_counter_and_then_by_keeper() -> None:
    assert NO_VERSION < Version(1, 9) < Version(2, 1) < Version(2, 3)


def test_members_sort_by_id() -> None:
    assert sorted([Member(9, 1), Member(2, 64), Member(5, 2)]) == [Member(2, 64), Member(5, 2), Member(9, 1)]


def test_ids_fit_a_signed_column() -> None:
    assert ID_BITS < 64


@pytest.mark.parametrize(
    ("label", "tag"),
    [("work", 0xA5471D34), ("orders.eu", 0x1535AAC6), ("größe", 0xBD73EDC4)],
)
def test_a_label_has_the_same_tag_everywhere(label: str, tag: int) -> None:
    assert label_tag(label) == tag


@pytest.mark.parametrize("frame", CONTROL_FRAMES)
def test_every_control_frame_is_a_value_that_starts_with_who_speaks(frame: type) -> None:
    assert is_dataclass(frame)
    assert fields(frame)[0].name == "source"
    assert "__slots__" in vars(frame)


def test_a_frame_cannot_be_changed() -> None:
    goodbye = Goodbye(1, "work", "default")
    with pytest.raises(FrozenInstanceError):
        goodbye.label = "other"  # type: ignore[misc]
