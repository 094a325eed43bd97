"""The full screen in a terminal of its own: it shows what is there, obeys its keys, and gives the terminal back."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cli.processes import PATIENCE_S, Commands


class Terminal:
    """A pseudo-terminal with `rvq top` in it. Collects what is drawn."""

    def __init__(self, port: int, columns: int = 80, lines: int = 24) -> None:
        self.ours, theirs = pty.openpty()
        self.resize(columns, lines)
        self.before = termios.tcgetattr(theirs)
        self.drawn = ""
        self._theirs = theirs
        command = [sys.executable, "-m", "rvq.cli", "top", "--port", str(port)]
        # Who has read lines with readline, as pytest has, passes a size on to its children: it would be taken for ours.
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment = kept | {"TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        )

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, text: str) -> None:
        """Until that was drawn, from what was not looked at before."""
        deadline = time.monotonic() + PATIENCE_S
        while text not in self.drawn:
            left = deadline - time.monotonic()
            assert left > 0, f"never drew {text!r}: {self.drawn[-2000:]!r}"
            if select.select([self.ours], [], [], left)[0]:
                self.drawn += os.read(self.ours, 65536).decode(errors="replace")
        self.drawn = self.drawn.split(text, 1)[1]

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    @property
    def modes(self) -> int:
        """Its local modes now: whether lines are gathered and echoed."""
        return int(termios.tcgetattr(self._theirs)[3])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for fd in (self.ours, self._theirs):
            with suppress(OSError):
                os.close(fd)


@pytest.fixture
def terminal(port: int) -> Iterator[Terminal]:
    opened = Terminal(port)
    yield opened
    opened.close()


def test_it_shows_who_is_there_and_ends_with_a_key(terminal: Terminal, commands: Commands) -> None:
    commands.listen()
    terminal.until("nobody is heard")
    terminal.until("work")
    terminal.until("RECEIVER")
    assert not terminal.modes & termios.ECHO
    terminal.press("s")
    terminal.until("by rate")
    terminal.press("p")
    terminal.until("PAUSED")
    terminal.press("q")
    assert terminal.process.wait(PATIENCE_S) == 0
    assert terminal.modes == terminal.before[3], "lines and echo are as they were"
    terminal.until("\x1b[?1049l")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_gives_the_terminal_back_when_it_is_told_to_end(terminal: Terminal, number: signal.Signals) -> None:
    terminal.until("nobody is heard")
    terminal.process.send_signal(number)
    assert terminal.process.wait(PATIENCE_S) == 0
    assert terminal.modes == terminal.before[3]


def test_it_follows_the_size_of_its_window(terminal: Terminal) -> None:
    terminal.until("q quit")
    terminal.resize(30, 10)
    terminal.process.send_signal(signal.SIGWINCH)
    terminal.until("…")
    terminal.press("q")
    assert terminal.process.wait(PATIENCE_S) == 0


def test_after_ctrl_z_it_goes_on_where_it_was(terminal: Terminal) -> None:
    terminal.until("nobody is heard")
    terminal.process.send_signal(signal.SIGTSTP)
    terminal.until("\x1b[?1049l")
    os.waitid(os.P_PID, terminal.process.pid, os.WSTOPPED | os.WNOWAIT)
    assert terminal.modes == terminal.before[3]
    terminal.process.send_signal(signal.SIGCONT)
    terminal.until("\x1b[?1049h")
    terminal.until("nobody is heard")
    terminal.press("q")
    assert terminal.process.wait(PATIENCE_S) == 0


def test_it_ends_when_its_terminal_is_gone(port: int) -> None:
    terminal = Terminal(port)
    terminal.until("nobody is heard")
    os.close(terminal._theirs)
    os.close(terminal.ours)
    try:
        assert terminal.process.wait(PATIENCE_S) is not None
    finally:
        terminal.close()
