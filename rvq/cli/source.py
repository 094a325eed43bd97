"""Where `rvq-send` takes its messages from: arguments or lines. Owns how far it has come with them."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from rvq.cli.bodies import BadLine, Keyed, LineReader
from rvq.cli.lines import chunks


class Source(Protocol):
    """Messages, as they become available."""

    is_terminal: bool
    """Somebody is typing: a bar would get in the way."""

    what: str
    """The word for one of them: each is a message, so its number is that of the message."""

    def runs(self) -> AsyncIterator[list[Keyed]]: ...

    def fraction(self) -> float | None:
        """How much of it has been read; None if nobody can know."""


class Arguments:
    """Each text is a message. A bad one is WrongUse at once, before anything is sent."""

    is_terminal = False
    what = "TEXT"

    def __init__(self, texts: Sequence[str], reader: LineReader) -> None:
        self._runs = reader.read_each([os.fsencode(text) for text in texts])

    async def runs(self) -> AsyncIterator[list[Keyed]]:
        yield self._runs

    def fraction(self) -> float | None:
        return 1.0


class Lines:
    """Each line is a message. WrongUse when a bad one is met, after those before it."""

    what = "line"

    def __init__(self, fd: int, reader: LineReader) -> None:
        self._fd = fd
        self._reader = reader
        status = os.fstat(fd)
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else None
        self.is_terminal = os.isatty(fd)

    async def runs(self) -> AsyncIterator[list[Keyed]]:
        async for chunk in chunks(self._fd):
            try:
                run = self._reader.read_run(chunk)
            except BadLine as error:
                yield error.before
                raise
            yield run

    def fraction(self) -> float | None:
        if self._size is None:
            return None
        return os.lseek(self._fd, 0, os.SEEK_CUR) / max(self._size, 1)
