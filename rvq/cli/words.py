"""Standard error: lines for people, and below the last one at most one bar that is drawn again in place.

Owns the stream. Never raises: nobody's work stops because nobody reads the words.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

_ERASE = "\r\x1b[K"


def say(text: str) -> None:
    """One line on standard error, if there is one."""
    _write(sys.stderr, f"{text}\n")


class Words:
    """What one command says while it runs. With `quiet`, only what is `urgent`."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._has_bar = False
        self.has_terminal = not quiet and _is_terminal(self._stream)

    @property
    def columns(self) -> int:
        """How wide a bar may be now; 0 without a terminal."""
        if not self.has_terminal:
            return 0
        columns = 0
        with suppress(OSError, ValueError):
            columns = os.get_terminal_size(self._stream.fileno()).columns  # 0 where nobody has said
        return (columns or 80) - 1  # the last one would wrap

    def say(self, text: str, *, urgent: bool = False) -> None:
        """A line. A bar makes room for it."""
        if urgent or not self._quiet:
            _write(self._stream, f"{self._erasing()}{text}\n")

    def draw(self, bar: str) -> None:
        """A bar in place of the one before."""
        if bar and self.has_terminal:
            _write(self._stream, f"{_ERASE}{bar}")
            self._has_bar = True

    def erase(self) -> None:
        """No bar any more."""
        if self._has_bar:
            _write(self._stream, self._erasing())

    def _erasing(self) -> str:
        had, self._has_bar = self._has_bar, False
        return _ERASE if had else ""


class _Log(logging.Handler):
    """The library's warnings in a command's words."""

    def __init__(self, prog: str, words: Words) -> None:
        super().__init__(logging.WARNING)
        self._prog = prog
        self._words = words

    def emit(self, record: logging.LogRecord) -> None:
        self._words.say(f"{self._prog}: {record.getMessage()}")


@contextmanager
def saying_warnings(prog: str, words: Words) -> Iterator[None]:
    """What the library warns of is said, and does not run into a bar."""
    logger = logging.getLogger("rvq")
    handler = _Log(prog, words)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _is_terminal(stream: TextIO | None) -> bool:
    with suppress(OSError, ValueError):
        return stream is not None and stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
    return False


def _write(stream: TextIO | None, text: str) -> None:
    if stream is not None:  # closed before we started: print() would take standard output instead
        with suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()
