"""Events and switches: the last of each are kept, and losses that belong together are one."""

from __future__ import annotations

from rvq import limits
from rvq.core.observed.happenings import SAME_S, Happenings, hex_id, short


def test_the_last_of_them_are_kept() -> None:
    happenings = Happenings()
    for n in range(limits.EVENTS_MAX + 10):
        happenings.tell(float(n), "work", "g", n + 1, "joined", f"{n}")
        happenings.switch(float(n), "work", "g", (n, 1))
    assert len(happenings.events) == len(happenings.switches) == limits.EVENTS_MAX
    assert happenings.events[-1].text == f"{limits.EVENTS_MAX + 9}" and happenings.count == limits.EVENTS_MAX + 10


def test_losses_of_one_receiver_within_seconds_are_one_event() -> None:
    happenings = Happenings()
    happenings.tell_loss(100.0, "work", "g", 7, 1)
    happenings.tell_loss(101.0, "work", "g", 8, 2)
    happenings.tell_loss(102.0, "work", "g", 7, 3)
    happenings.tell_loss(103.0 + SAME_S, "work", "g", 7, 5)
    assert [(e.who, e.count, e.at) for e in happenings.events] == [(7, 4, 100.0), (8, 2, 101.0), (7, 5, 103.0 + SAME_S)]
    assert happenings.events[0].text.endswith("asked for 4 frames that it missed in 2 s")
    assert happenings.events[2].picture()["text"].endswith("asked for 5 frames that it missed")


def test_ids_are_as_logs_have_them() -> None:
    assert hex_id(0x12AB) == "00000000000012ab" and short(0xABCD << 48) == "abcd…"


def test_pictures_are_plain_and_say_what_is_not_known() -> None:
    happenings = Happenings()
    happenings.tell(1.23456, "work", "", 0, "sender", "x")
    picture = happenings.events[0].picture()
    assert picture == {"at": 1.235, "label": "work", "group": None, "who": None, "kind": "sender", "text": "x"}
    switch = happenings.switch(1.0, "work", "g", (3, 0xA))
    switch.slots = (1, 0)
    assert not switch.known
    assert switch.picture()["slots"] == [hex_id(1), None] and switch.picture()["version"] == [3, hex_id(0xA)]
