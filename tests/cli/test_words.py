"""What is said on standard error, and the bar below it."""

from __future__ import annotations

import io
import logging

import pytest

from rvq.cli.words import Words, say, saying_warnings


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _terminal_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def test_a_line_is_a_line() -> None:
    stream = io.StringIO()
    Words(stream).say("hello")
    assert stream.getvalue() == "hello\n"


def test_without_a_terminal_there_is_no_bar() -> None:
    stream = io.StringIO()
    words = Words(stream)
    words.draw("[####]")
    words.erase()
    assert (stream.getvalue(), words.columns) == ("", 0)


def test_a_bar_is_drawn_in_place_and_makes_room_for_lines() -> None:
    stream = Terminal()
    words = Words(stream)
    words.draw("one")
    words.draw("two")
    words.say("a line")
    words.erase()
    words.draw("three")
    words.erase()
    assert stream.getvalue() == "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[Ka line\n\r\x1b[Kthree\r\x1b[K"


def test_a_terminal_of_unknown_width_has_eighty_columns() -> None:
    assert Words(Terminal()).columns == 79


def test_a_dumb_terminal_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not Words(Terminal()).has_terminal


def test_quiet_says_only_what_is_urgent() -> None:
    stream = Terminal()
    words = Words(stream, quiet=True)
    words.say("hello")
    words.draw("bar")
    words.say("fire", urgent=True)
    assert stream.getvalue() == "fire\n"


def test_nobody_listening_to_the_words_stops_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    Words(Broken()).say("hello")
    monkeypatch.setattr("sys.stderr", None)
    say("hello")
    Words().say("hello")


def test_what_the_library_warns_of_is_said_and_what_it_only_tells_is_not() -> None:
    stream = io.StringIO()
    with saying_warnings("rvq-send", Words(stream)):
        logging.getLogger("rvq").warning("the buffer is %s", "small")
        logging.getLogger("rvq").info("somebody joined")
    assert stream.getvalue() == "rvq-send: the buffer is small\n"
