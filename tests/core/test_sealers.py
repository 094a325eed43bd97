"""Who is known on a sealed bus, who is asked, and that neither grows without end. Times are numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import pytest

from rvq import limits
from rvq.core import sealers
from rvq.core.sealers import AGAIN_S, AGAIN_S_MAX, ANSWER_S, SILENT_S, Sealers
from rvq.wire.keys import Key
from rvq.wire.seal import Cipher

KEY, OTHER = Key(bytes(32)), Key(bytes(range(32)))
A = b"A" * 16


@pytest.fixture
def known() -> Sealers:
    return Sealers(b"bus", SILENT_S)


@pytest.fixture
def no_ciphers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealers, "cipher_for", lambda *_: cast(Cipher, None))


def salt(number: int) -> bytes:
    return number.to_bytes(16, "big")


def prove(known: Sealers, now: float, who: bytes, source: str = "a", counter: int = 0) -> bool:
    nonce = known.ask(now, who, source, b"fresh")
    return nonce is not None and known.prove(now, who, source, nonce, counter)


def test_one_that_answers_is_known_from_where_it_answered(known: Sealers) -> None:
    assert known.find(0.0, A) is None
    assert known.ask(0.0, A, "a", b"fresh") == b"fresh"
    assert known.prove(0.1, A, "a", b"fresh", 7)
    found = known.find(0.2, A)
    assert found is not None and (found.address, found.floor) == ("a", 7)
    known.check_invariants()


@pytest.mark.parametrize(
    ("who", "source", "nonce", "at"),
    [
        (salt(1), "a", b"fresh", 0.1),
        (A, "b", b"fresh", 0.1),
        (A, "a", b"stale", 0.1),
        (A, "a", b"fresh", ANSWER_S + 0.1),
    ],
    ids=["another start", "from elsewhere", "another number", "too late"],
)
def test_an_answer_to_something_else_proves_nothing(
    known: Sealers, who: bytes, source: str, nonce: bytes, at: float
) -> None:
    known.ask(0.0, A, "a", b"fresh")
    assert not known.prove(at, who, source, nonce, 7)
    assert not known.known


def test_an_answer_counts_once(known: Sealers) -> None:
    known.ask(0.0, A, "a", b"fresh")
    assert known.prove(0.1, A, "a", b"fresh", 7)
    assert not known.prove(0.1, A, "a", b"fresh", 0)


def test_a_challenge_is_repeated_with_growing_pauses_and_then_is_another_one(known: Sealers) -> None:
    asked = []
    for tick in range(1000):
        nonce = known.ask(tick * 0.005, A, "a", b"%d" % tick)
        if nonce is not None:
            asked.append((tick * 0.005, nonce))
    pauses = [later - sooner for (sooner, _), (later, _) in pairwise(asked)]
    assert min(pauses) >= AGAIN_S - 1e-9 and max(pauses) <= AGAIN_S_MAX + 0.02 and pauses[:3] == sorted(pauses[:3])
    assert {nonce for at, nonce in asked if at <= ANSWER_S} == {b"0"} and len({nonce for _, nonce in asked}) > 3
    assert not known.is_asked(0.0, A, "b") and known.is_asked(asked[-1][0], A, "a")


def test_one_that_was_silent_for_long_is_not_known_any_more(known: Sealers) -> None:
    assert prove(known, 0.0, A)
    assert known.find(SILENT_S, A) is not None and known.find(SILENT_S + 0.1, A) is None
    known.forget_silent(SILENT_S + 0.1)
    assert not known.known


def test_proving_again_forgets_what_was_taken_and_begins_behind_it(known: Sealers) -> None:
    assert prove(known, 0.0, A, counter=5)
    first = known.known[A]
    known.open_way(KEY.id + b"way", first, KEY, known.cipher(KEY, A))
    assert prove(known, 20.0, A, "b", counter=50)
    assert known.known[A].floor == 50 and not known.ways
    known.check_invariants()


def test_a_key_that_is_dropped_takes_its_ways_along_and_recordings_stay_old_if_it_comes_back(known: Sealers) -> None:
    assert prove(known, 0.0, A, counter=5)
    one = known.known[A]
    for key in (KEY, OTHER):
        way = known.open_way(key.id + b"way", one, key, known.cipher(key, A))
        way.window.take(100)
    known.forget_key(KEY.id)
    assert set(known.ways) == {OTHER.id + b"way"} and not known.has_cipher(KEY, A) and known.has_cipher(OTHER, A)
    assert known.floor(one, KEY) == 100 and known.floor(one, OTHER) == 5
    assert not known.open_way(KEY.id + b"way", one, KEY, known.cipher(KEY, A)).window.is_new(100)
    known.check_invariants()


@pytest.mark.usefixtures("no_ciphers")
def test_however_many_keys_were_dropped_the_first_brings_no_recordings_back(known: Sealers) -> None:
    assert prove(known, 0.0, A)
    one = known.known[A]
    keys = [Key(bytes([number]) * 32) for number in range(limits.KEYS_MAX + 3)]
    for counter, key in enumerate(keys, 1):
        known.open_way(key.id + b"way", one, key, known.cipher(key, A)).window.take(10 * counter)
        known.forget_key(key.id)
    assert len(one.dropped) == limits.KEYS_MAX
    assert [known.floor(one, key) >= 10 * counter for counter, key in enumerate(keys, 1)] == [True] * len(keys)
    known.check_invariants()


@pytest.mark.usefixtures("no_ciphers")
def test_neither_the_known_nor_the_asked_grow_without_end(known: Sealers) -> None:
    for number in range(3 * limits.SEALERS_MAX):
        prove(known, 0.0, salt(number))
        known.ask(0.0, salt(number), "elsewhere", b"fresh")
    assert len(known.known) == limits.SEALERS_MAX and len(known.asked) == limits.CHALLENGES_MAX
    known.check_invariants()
    assert not prove(known, 1.0, A), "nobody who is here makes room"
    assert prove(known, SILENT_S + 1.0, A), "the silent do"
    known.check_invariants()


def test_challenges_that_nobody_answers_are_forgotten(known: Sealers) -> None:
    known.ask(0.0, A, "a", b"fresh")
    known.forget_silent(3 * ANSWER_S)
    assert not known.asked
