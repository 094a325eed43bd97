"""Dead letters: their shape, and where they go."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import rvq
from rvq.dead import DeadLetter, dead_label, live_label, sendable
from rvq.wire.records import make_record, read_record

LETTER = DeadLetter(
    id="0000000000000abc-24",
    label="work",
    group="default",
    body={"job": [1, b"raw"]},
    key="user-7",
    headers={"trace": "a1"},
    error="ValueError: no",
    traceback="Traceback …",
    attempts=5,
    sent_at=1700000000.5,
    died_at=1700000009.5,
    first_owner="0" * 16,
    last_owner="f" * 16,
)


def test_dead_letters_go_to_a_label_of_their_own_and_those_of_dead_letters_nowhere() -> None:
    assert dead_label("work") == "work.dead"
    assert dead_label("work.dead") is None


@pytest.mark.parametrize("key", ["user-7", b"\x00\xff", None])
def test_a_dead_letter_comes_back_as_it_was_sent(key: str | bytes | None) -> None:
    letter = dataclasses.replace(LETTER, key=key)
    record = make_record(letter.as_body())
    assert DeadLetter.from_body(read_record(record.kind, record.data).body) == letter


@pytest.mark.parametrize("body", [None, 7, "text", b"", [], {}, {"id": "1"}])
def test_what_somebody_sent_by_hand_is_no_dead_letter(body: object) -> None:
    with pytest.raises(rvq.RvqError, match="not a dead letter"):
        DeadLetter.from_body(body)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(DeadLetter)])
def test_a_dead_letter_without_one_of_its_facts_is_none(name: str) -> None:
    body = LETTER.as_body()
    del body[name]
    with pytest.raises(rvq.RvqError, match="not a dead letter"):
        DeadLetter.from_body(body)


def test_facts_that_a_later_release_adds_do_no_harm() -> None:
    assert DeadLetter.from_body(LETTER.as_body() | {"mood": "grim"}) == LETTER


def test_text_that_cannot_be_encoded_is_spelt_out() -> None:
    assert sendable("no such file: '\udcff' …") == "no such file: '\\udcff' …"


@pytest.mark.parametrize(
    ("name", "value"),
    [("id", None), ("attempts", "5"), ("attempts", True), ("key", 5), ("headers", []), ("died_at", "now")],
)
def test_a_fact_of_another_type_makes_it_none(name: str, value: Any) -> None:
    with pytest.raises(rvq.RvqError, match="not a dead letter"):
        DeadLetter.from_body(LETTER.as_body() | {name: value})


def test_a_body_that_is_too_large_is_left_out_and_that_is_known() -> None:
    cut = DeadLetter.from_body(LETTER.without_body(17).as_body())
    assert (cut.body, cut.headers, cut.lacks_body) == (None, None, True)
    assert cut.error == "ValueError: no (its body was too large: 17)"
    assert not LETTER.lacks_body


def test_the_label_of_the_living_is_found_from_that_of_their_dead() -> None:
    assert live_label("work.dead") == live_label("work") == "work"
