"""What a doctor answers, and that it answers no more than that."""

from __future__ import annotations

from typing import Any, cast

import pytest

from rvq.aio.checkup import answering
from rvq.aio.checkup.answering import Answering, Me
from rvq.aio.checkup.post import Place, Post, Way
from rvq.aio.checkup.words import WORD_BYTES_MIN, Kind, Speech, Word
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key

ME = Me(8, "host-b", 815, 1500, "", False)
SOURCE: Place = ("10.0.0.1", 40_000)


class FakePost:
    def __init__(self) -> None:
        self.said: list[tuple[Word, Place | None, int, bool]] = []

    def say(self, word: Word, to: Place | None = None, size: int = 0, *, whole: bool = False) -> bool:
        self.said.append((word, to, size, whole))
        return True


@pytest.fixture
def post() -> FakePost:
    return FakePost()


@pytest.fixture
def doctor(post: FakePost) -> Answering:
    return Answering(ME, cast(Post, post), wall=lambda: 1000.5)


def probe(number: int, to: int = 8, whole: bool = False) -> Word:
    return Word(Kind.PROBE, 7, to, number, (1, whole))


def test_a_call_is_answered_by_both_ways(doctor: Answering, post: FakePost) -> None:
    doctor.on_word(Word(Kind.CALL, 7, 0, 5, ("a", 1, 1500, "", True)), SOURCE, Way.MULTICAST, 224)
    here = Word(Kind.HERE, 8, 7, 5, ("host-b", 815, 1500, "", False))
    assert post.said == [(here, SOURCE, 0, False), (here, None, 0, False)]


def test_a_probe_is_echoed_the_way_it_came_in_its_size_with_the_time(doctor: Answering, post: FakePost) -> None:
    doctor.on_word(probe(5, whole=True), SOURCE, Way.MULTICAST, 1472)
    doctor.on_word(probe(6), SOURCE, Way.UNICAST, 300)
    assert post.said == [
        (Word(Kind.ECHO, 8, 7, 5, (1, 1000.5, 1000.5)), None, 1472, True),
        (Word(Kind.ECHO, 8, 7, 6, (1, 1000.5, 1000.5)), SOURCE, 300, False),
    ]


def test_what_was_heard_is_reported_once_for_each_probe_and_run(doctor: Answering, post: FakePost) -> None:
    for number in (5, 6, 6):
        doctor.on_word(probe(number), SOURCE, Way.MULTICAST, 300 + number)
    for phase, facts in ((1, (1, 2, 306)), (2, (2, 0, 0))):
        post.said.clear()
        doctor.on_word(Word(Kind.ASK, 7, 8, 9, (phase,)), SOURCE, Way.UNICAST, 224)
        assert [said[0].facts for said in post.said] == [facts, facts]
        assert [said[1] for said in post.said] == [SOURCE, None]


@pytest.mark.parametrize("word", [probe(5, to=9), Word(Kind.ASK, 7, 9, 1, (1,)), Word(Kind.BYE, 7, 0, 0)])
def test_what_is_for_another_or_asks_for_nothing_is_passed_over(doctor: Answering, post: FakePost, word: Word) -> None:
    doctor.on_word(word, SOURCE, Way.MULTICAST, 224)
    assert not post.said


@pytest.mark.parametrize("keys", [None, Keys([new_key()])], ids=["plain", "sealed"])
def test_no_answer_is_longer_than_what_asks_for_it(keys: Keys | None) -> None:
    speech = Speech(Bus(), keys)
    here = Me(2**63, "h" * 30, 4_194_304, 65_536, speech.key_name, True).word(Kind.HERE, 2**63, 2**32)
    report = Word(Kind.REPORT, 2**63, 2**63, 2**63, (2**16, 2**16, 2**16))
    assert max(len(speech.say(word)) for word in (here, report)) < WORD_BYTES_MIN


def test_strangers_make_nothing_grow_without_bound(doctor: Answering, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "TALLIES_MAX", 3)
    monkeypatch.setattr(answering, "PROBES_MAX", 4)
    for source in range(20, 30):
        for number in range(10):
            word = Word(Kind.PROBE, source, 8, number, (1, False))
            doctor.on_word(word, SOURCE, Way.MULTICAST, 224)
    tallies: dict[Any, Any] = doctor._tallies
    assert len(tallies) == 3 and {len(tally.numbers) for tally in tallies.values()} == {4}
