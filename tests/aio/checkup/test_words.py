"""Words of doctors as bytes: what is said is heard, and what is no word, or another bus's, is told apart."""

from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as some

from rvq.aio.checkup.words import TEXT_CHARS_MAX, WORD_BYTES_MIN, Kind, Speech, Stranger, Word, parse
from rvq.bus import Bus
from rvq.keyfile import Keys, new_key
from rvq.wire.seal import is_sealed

OURS, OTHER = new_key(), new_key()
PLAIN, SEALED = Speech(Bus(), None), Speech(Bus(), Keys([OURS]))
CALL = Word(Kind.CALL, 7, 0, 1, ("host-a", 4711, 1500, "", True))
PROBE = Word(Kind.PROBE, 7, 8, 2**63, (3, True))


@pytest.mark.parametrize("speech", [PLAIN, SEALED], ids=["plain", "sealed"])
@pytest.mark.parametrize("word", [CALL, PROBE, Word(Kind.BYE, 7, 0, 0)])
def test_what_is_said_is_heard_at_any_size(speech: Speech, word: Word) -> None:
    for size in (WORD_BYTES_MIN, 1472, 60_000):
        datagram = speech.say(word, size)
        assert len(datagram) == size and speech.hear(datagram) == word
    assert len(speech.say(word)) < WORD_BYTES_MIN


def test_a_sealed_word_shows_nothing_and_cannot_be_changed() -> None:
    datagram = SEALED.say(CALL)
    assert is_sealed(datagram) and b"host-a" not in datagram
    assert SEALED.hear(datagram[:-1] + bytes([datagram[-1] ^ 1])) == Stranger(
        "it has our key and another address range or port: give all the same --address and --port"
    )


@pytest.mark.parametrize(
    ("speaker", "hearer", "fault"),
    [
        (Speech(Bus(), Keys([OTHER])), SEALED, OTHER.name),
        (PLAIN, SEALED, "not sealed"),
        (SEALED, PLAIN, "this bus has no key"),
        (Speech(Bus(address="239.192.0.0/20"), Keys([OURS])), SEALED, "another address range"),
    ],
    ids=["another key", "plain", "sealed", "another bus"],
)
def test_who_cannot_be_understood_is_a_stranger_and_it_says_why(speaker: Speech, hearer: Speech, fault: str) -> None:
    heard = hearer.hear(speaker.say(CALL))
    assert isinstance(heard, Stranger) and fault in heard.fault


def test_any_live_key_is_understood() -> None:
    rekeying = Speech(Bus(), Keys([OTHER, OURS]))
    assert rekeying.key_name == OTHER.name
    assert rekeying.hear(SEALED.say(CALL)) == CALL
    assert PLAIN.key_name == ""


def test_texts_of_others_do_no_harm_to_a_terminal() -> None:
    heard = PLAIN.hear(PLAIN.say(Word(Kind.HERE, 1, 2, 3, ("\x1b[2J" + "x" * 300, 1, 1500, "\n", False))))
    assert isinstance(heard, Word)
    assert heard.facts[0].startswith("?[2J") and len(heard.facts[0]) == TEXT_CHARS_MAX and heard.facts[3] == "?"


def framed(body: object) -> bytes:
    packed = msgpack.packb(body)
    return b"rvqd\x01" + len(packed).to_bytes(2, "big") + packed


@pytest.mark.parametrize(
    "body",
    [
        [99, 1, 2, 3, []],
        [3, 1, 2, 3, []],
        [3, 1, 2, 3, [1, 1]],
        [3, -1, 2, 3, [1, True]],
        [4, 1, 2, 3, [1, float("nan"), 0.0]],
        [7, 1, 2, 3, {}],
        [7, 1, 2],
        7,
    ],
)
def test_what_has_the_wrong_shape_is_no_word(body: object) -> None:
    assert parse(framed(body)) is None


def test_other_versions_and_cut_words_are_none() -> None:
    datagram = PLAIN.say(CALL)
    assert parse(b"rvqd\x02" + datagram[5:]) is None
    assert all(PLAIN.hear(datagram[:size]) is None for size in range(len(datagram)))


@given(some.binary(max_size=300))
def test_no_datagram_raises(datagram: bytes) -> None:
    for speech in (PLAIN, SEALED):
        for start in (b"", b"rvqd\x01\x00\x20", b"rvqs"):
            assert not isinstance(speech.hear(start + datagram), Word) or start != b"rvqs"
