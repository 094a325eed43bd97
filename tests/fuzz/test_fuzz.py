"""Every decoder with what the corpus has, and with that bent a few hundred times. `make fuzz` goes on for longer."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvq.limits import MIB
from tests.fuzz.__main__ import CORPUS, main, seeds
from tests.fuzz.bending import bend
from tests.fuzz.targets import TARGETS

SLOW = {"segment": 40, "index": 40, "marker": 40, "machines": 40, "web_order": 100, "keyfile": 100}
TRIES = 400


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_breaks_nothing(name: str) -> None:
    assert list((CORPUS / name).glob("*")), "each decoder has something to begin with"
    for data in seeds(name):
        TARGETS[name](data)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_bent_is_read_or_refused(name: str) -> None:
    random, pool = Random(name), seeds(name)
    for _ in range(SLOW.get(name, TRIES)):
        TARGETS[name](bend(random, pool))


@pytest.mark.parametrize("name", ["control", "batch", "fragment", "train", "record", "sealed", "stored", "typed"])
def test_any_bytes_are_read_or_refused(name: str) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.binary(max_size=200))
    def try_them(data: bytes) -> None:
        TARGETS[name](data)

    try_them()


@pytest.mark.parametrize("name", ["control", "batch", "fragment", "train", "record", "stored"])
def test_no_datagram_takes_much_memory_to_read(name: str) -> None:
    random, pool = Random(name), [data[:60_000] for data in seeds(name)]
    tracemalloc.start()
    try:
        for _ in range(60):
            TARGETS[name](bend(random, pool))
        assert tracemalloc.get_traced_memory()[1] < 40 * MIB
    finally:
        tracemalloc.stop()


def test_found_ones_are_moved_into_the_corpus() -> None:
    assert not list(CORPUS.glob("found-*")), "move it into its folder, and fix the decoder"


def test_a_decoder_that_raises_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(data: bytes) -> None:
        if len(data) % 2:
            raise KeyError(len(data))

    monkeypatch.setitem(TARGETS, "control", broken)
    monkeypatch.setattr("tests.fuzz.__main__.CORPUS", tmp_path)
    assert main(["--only", "control", "--minutes", "0.05", "--plain"]) == 1
    assert "BROKEN" in capsys.readouterr().out
