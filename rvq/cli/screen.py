"""The whole terminal for one picture that changes. Owns taking the terminal, and giving it back whatever happens.

Draws with `rich`, which is in the extra `rvq[top]`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from rvq.cli.columns import Line
from rvq.cli.looking import Looking, keys_of

DRAW_S = 0.5
"""Between two pictures: about as often as there is something new."""


async def show(picture: Callable[[], dict[str, Any]], stopping: asyncio.Event) -> None:
    """Until it is told to stop, by a key or by `stopping`, or the terminal is gone."""
    looking, wake, console = Looking(), asyncio.Event(), Console(file=sys.stdout)
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    seen = picture()

    def on_typed(typed: str) -> None:
        for key in keys_of(typed):
            looking.press(key, [label["label"] for label in seen["labels"]], max(1, console.height // 2))
        looking.over = looking.over or not typed  # nobody is at the other end any more
        wake.set()

    keys = Keys(on_typed)

    def on_suspended() -> None:
        """Ctrl-Z: the terminal is the shell's until it goes on."""
        live.stop()
        keys.close()
        os.kill(os.getpid(), signal.SIGSTOP)
        keys.open()
        live.start()
        wake.set()

    with _calling_on({signal.SIGWINCH: wake.set, signal.SIGTSTP: on_suspended}), keys, live:
        while not (looking.over or stopping.is_set()):
            seen = seen if looking.paused else picture()
            live.update(_drawn(looking.compose(seen, *console.size)), refresh=True)
            wake.clear()
            await _wait(wake, stopping)


def _drawn(lines: Sequence[Line]) -> Text:
    texts = [Text.assemble(*((cell.text, cell.style) for cell in line), end="") for line in lines]
    joined = Text("\n").join(texts)
    joined.no_wrap, joined.overflow = True, "crop"
    return joined


async def _wait(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=DRAW_S, return_when="FIRST_COMPLETED")
    finally:
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


class Keys:
    """Keys as they are pressed, without Enter and without an echo. None where standard input is no terminal."""

    def __init__(self, on_typed: Callable[[str], None]) -> None:
        self._on_typed = on_typed
        self._fd = sys.stdin.fileno() if sys.stdin else -1
        self._before: list[Any] | None = None

    def open(self) -> None:
        if self._fd >= 0 and os.isatty(self._fd):
            self._before = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
            asyncio.get_running_loop().add_reader(self._fd, self._read)

    def close(self) -> None:
        """The terminal is as it was. Twice is fine."""
        before, self._before = self._before, None
        if before is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            with suppress(termios.error, OSError):  # it may be gone
                termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    def _read(self) -> None:
        typed = b""
        with suppress(OSError):
            typed = os.read(self._fd, 256)
        if not typed:
            asyncio.get_running_loop().remove_reader(self._fd)
        self._on_typed(typed.decode(errors="ignore"))

    def __enter__(self) -> Keys:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _calling_on(calls: dict[signal.Signals, Callable[[], object]]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number, call in calls.items():
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in calls:
            loop.remove_signal_handler(number)
