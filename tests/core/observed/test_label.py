"""A label as an observer knows it: who comes and goes, who inherits, who switches, and what a stranger cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from rvq import limits
from rvq.core.machine import Wall
from rvq.core.observed.happenings import Happenings
from rvq.core.observed.label import GONE_S, SeenLabel
from rvq.timings import Timings
from rvq.wire.frames import Goodbye, Member, SenderGoodbye, TableFrame, Version
from tests.core.observed.frames import GROUP, LABEL, SENDER, a_beat, an_about, an_alive

V1, V2 = Version(1, 7), Version(2, 7)
BEAT = Timings().heartbeat


class Look:
    """A label that is looked at, and ends that speak every heartbeat until they are told not to."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happenings = Happenings()
        self.seen = SeenLabel(LABEL, Timings(), Wall(1e9), self.happenings, 0.0)
        self.versions: dict[int, Version] = {}
        self.beats = 0
        self.lanes: dict[int, tuple[tuple[int, int], ...]] = {}
        self.sender: dict[str, Any] | None = None

    def receivers(self, *ids: int, version: Version = V1) -> None:
        for slot, id in enumerate(ids):
            self.versions[id] = version
            self.hear(an_about(id, version=version, slot=slot, slots=len(ids)))

    def hear(self, *frames: Any) -> None:
        for frame in frames:
            self.seen.hear(self.now, frame, "there")
            self.seen.check_invariants()

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until - 1e-9:
            self.now += BEAT
            self.beats += 1
            for id, version in self.versions.items():
                self.hear(an_alive(id, self.beats, version, lanes=self.lanes.get(id, ())))
            if self.sender is not None:
                self.hear(a_beat(self.beats, **self.sender))
            self.seen.expire(self.now)
            self.seen.check_invariants()

    def told(self, *kinds: str) -> list[tuple[str, int]]:
        return [(e.kind, e.who) for e in self.happenings.events if not kinds or e.kind in kinds]

    def states(self) -> dict[int, str]:
        (group,) = self.seen.picture(self.now)["groups"]
        return {int(row["id"], 16): row["state"] for row in group["receivers"]}


@pytest.fixture
def look() -> Look:
    look = Look()
    look.receivers(7, 8, 9)
    look.run(3.0)
    return look


def test_those_who_were_there_are_no_news(look: Look) -> None:
    assert look.told() == [] and look.states() == {7: "in", 8: "in", 9: "in"}


def test_one_that_is_killed_is_silent_within_half_a_second_and_told_of_within_two(look: Look) -> None:
    del look.versions[9]
    look.run(0.6)
    assert look.states()[9] == "silent" and look.told() == []
    look.run(0.8)
    assert look.told() == [("silent", 9)]


def test_one_that_is_silent_and_in_no_table_any_more_is_expelled(look: Look) -> None:
    del look.versions[9]
    look.run(1.4)
    look.versions = dict.fromkeys(look.versions, V2)
    look.run(0.4)
    assert look.told() == [("silent", 9), ("table", 7), ("expelled", 9)] and set(look.states()) == {7, 8}


def test_one_that_nobody_expels_goes_in_the_end(look: Look) -> None:
    look.versions.clear()
    look.run(2.0)
    assert set(look.states().values()) == {"silent"}
    look.run(GONE_S)
    assert look.seen.groups == {} and look.seen.ends == 0


def test_one_that_was_stopped_and_goes_on_is_back(look: Look) -> None:
    version = look.versions.pop(9)
    look.run(1.4)
    look.versions[9] = version
    look.run(0.4)
    assert look.told() == [("silent", 9), ("back", 9)] and look.states()[9] == "in"


def test_one_that_says_goodbye_has_left_and_late_words_do_not_bring_it_back(look: Look) -> None:
    del look.versions[9]
    look.hear(Goodbye(9, LABEL, GROUP), Goodbye(9, LABEL, GROUP), an_about(9), an_alive(9, 99, V1))
    assert look.told() == [("left", 9)] and set(look.states()) == {7, 8}


def test_one_that_joins_is_told_of_when_it_is_in_the_table(look: Look) -> None:
    look.versions[10] = Version(0, 0)
    look.run(0.4)
    assert look.states()[10] == "joining" and look.told() == []
    members = tuple(Member(id, 1) for id in (7, 8, 9, 10))
    look.hear(TableFrame(7, LABEL, GROUP, V2, members, ()))
    look.versions = dict.fromkeys(look.versions, V2)
    look.run(0.2)
    assert look.told() == [("table", 7), ("joined", 10)]
    assert look.happenings.switches[-1].slots == (7, 8, 9, 10)


def test_a_sender_comes_goes_and_dies(look: Look) -> None:
    look.sender = {}
    look.run(0.4)
    assert look.told() == [("sender", SENDER)]
    look.sender = None
    look.run(1.4)
    assert look.told("sender died") == [("sender died", SENDER)]
    assert look.seen.picture(look.now)["senders"][0]["state"] == "silent"
    look.run(GONE_S)
    assert not look.seen.senders
    look.hear(an_about(SENDER + 1, ""), SenderGoodbye(SENDER + 1, LABEL), an_about(SENDER + 1, ""))
    assert look.told()[-1] == ("sender left", SENDER + 1) and not look.seen.senders


def test_a_switch_is_told_with_its_sequence_when_both_have_spoken_of_it(look: Look) -> None:
    look.sender = {"stamp": 4, "groups": {GROUP: V1, "other": V1}}
    look.run(0.2)
    look.hear(an_about(SENDER, "", stamp=4, stamp_at=100))
    look.run(0.2)
    assert look.told("switched") == [], "what was in force before is no news"
    look.hear(an_about(SENDER, "", stamp=5, stamp_at=300))
    assert look.told("switched") == []
    look.sender = {"stamp": 5, "groups": {GROUP: V2, "other": V1}}
    look.run(0.4)
    assert look.told("switched") == [("switched", SENDER)]
    assert look.happenings.events[-1].text.endswith("took table 2 of default from sequence 300 on")
    look.sender = {"stamp": 7, "groups": {GROUP: Version(3, 7), "other": V1}}
    look.run(0.2)
    look.hear(an_about(SENDER, "", stamp=7, stamp_at=500))
    assert look.happenings.events[-1].text.endswith("took table 3 of default at the latest from sequence 500 on")


def test_a_switch_within_a_table_is_told_too(look: Look) -> None:
    look.sender = {"stamp": 4, "groups": {GROUP: V1}}
    look.receivers(7, 8)
    look.hear(an_about(SENDER, "", stamp=4, stamp_at=100))
    look.run(0.4)
    look.sender = {"stamp": 5, "groups": {GROUP: V1}}
    look.run(0.2)
    look.hear(an_about(SENDER, "", stamp=5, stamp_at=300))
    look.run(0.4)
    (event,) = [event for event in look.happenings.events if event.kind == "switched"]
    assert event.text.endswith("switched to other members of its tables from sequence 300 on")
    look.sender = {"stamp": 5, "groups": {GROUP: V2}}
    look.run(0.4)
    assert len(look.told("switched")) == 1, "a table with the members that it had switches nothing"


def test_who_reports_on_a_lane_of_one_that_is_silent_has_inherited_it(look: Look) -> None:
    look.sender = {"stamp": 1, "groups": {GROUP: V1}}
    look.lanes = {7: ((1, 0),), 8: ((1, 1),), 9: ((1, 2),)}
    look.run(1.0)
    del look.versions[9]
    look.run(1.4)
    look.lanes[7] = ((1, 0), (1, 2))
    look.run(0.6)
    assert look.told("inherited") == [("inherited", 7)]
    assert "inherited 1 lane of 0000… from sender 5e00…" in look.happenings.events[-1].text


def test_a_lane_of_which_another_was_given_a_part_is_not_inherited(look: Look) -> None:
    look.sender = {"stamp": 1, "groups": {GROUP: V1}}
    look.lanes = {7: ((1, 0),), 8: ((1, 0), (1, 1))}
    look.run(2.0)
    assert look.told("inherited") == []


def test_loss_is_told_where_and_when(look: Look) -> None:
    look.hear(an_about(8, version=V1, slot=1, slots=3, repaired=4, lost=2))
    assert [(e.kind, e.who, e.count) for e in look.happenings.events] == [("loss", 8, 4), ("lost", 8, 0)]
    assert look.happenings.events[0].at == round(1e9 + look.now, 6)


def test_nobody_was_silent_while_the_observer_slept(look: Look) -> None:
    look.now += 30.0
    look.seen.forgive(30.0)
    look.seen.expire(look.now)
    assert look.told() == [] and set(look.states().values()) == {"in"}


def test_a_picture_is_complete_when_everyone_has_said_who_it_is() -> None:
    look = Look()
    assert look.seen.is_complete(0.0), "nobody is there"
    look.versions = {7: V1, 8: V1}
    look.run(0.4)
    assert not look.seen.is_complete(look.now)
    look.hear(an_about(7, version=V1, slot=0, slots=3), an_about(8, version=V1, slot=1, slots=3))
    assert not look.seen.is_complete(look.now), "whose is the third slot?"
    look.receivers(7, 8, 9)
    look.run(0.4)
    assert look.seen.is_complete(look.now)
    look.sender = {"stamp": 1, "groups": {GROUP: V1, "unheard": V1}}
    look.run(0.2)
    look.hear(an_about(SENDER, ""))
    assert not look.seen.is_complete(look.now), "a group of which nobody was heard"


def test_strangers_cannot_make_it_grow_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OBSERVED_ENDS_MAX", 50)
    monkeypatch.setattr(limits, "GROUPS_MAX", 5)
    monkeypatch.setattr(limits, "OBSERVED_LANES_MAX", 10)
    look = Look()
    for n in range(1, 200):
        look.hear(an_about(n, f"g{n}"), an_about(n, ""), an_alive(n, 1, V1, group=f"g{n % 7}"))
        look.hear(TableFrame(n, LABEL, f"h{n}", V1, (), ()), Goodbye(n, LABEL, "g1"))
    look.hear(a_beat(1))
    look.hear(an_alive(8, 2, V1, group="g1", lanes=tuple((1, slot) for slot in range(100))))
    assert look.seen.ends <= 50 and len(look.seen.groups) <= 5
    look.seen.expire(look.now + 100.0)
    assert look.seen.ends == 0
