"""Commands as real processes, for tests that run them together. Waits for what they print, never for the clock."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

PATIENCE_S = 30.0
"""How long anything may take that takes no time."""


class Running:
    """A command that runs. Collects its lines as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.words: list[str] = []
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._collect, args=(stream, take), daemon=True)
            for stream, take in ((process.stdout, self.lines.append), (process.stderr, self._take_words))
            if stream is not None
        ]
        for thread in self._threads:
            thread.start()

    def _take_words(self, line: bytes) -> None:
        if b"sysctl -w net.core" not in line:  # of the machine, and not of the test
            self.words.append(line.decode())

    def _collect(self, stream: IO[bytes], take: Callable[[bytes], None]) -> None:
        for line in stream:
            with self._changed:
                take(line.removesuffix(b"\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def texts(self) -> list[str]:
        return [line.decode() for line in self.lines]

    def until(self, is_so: Callable[[], object], what: str = "") -> None:
        """Until what it printed makes it so."""
        with self._changed:
            if not self._changed.wait_for(is_so, PATIENCE_S):
                raise AssertionError(f"not {what or 'so'}: printed {self.lines[-5:]}, said {self.words}")

    def until_said(self, pattern: str) -> str:
        """The first line of its words that fits."""
        self.until(lambda: any(re.search(pattern, text) for text in self.words), f"said {pattern}")
        return next(text for text in self.words if re.search(pattern, text))

    def until_place(self, members: int) -> None:
        """Until its last word is that it is one of so many."""
        self.until(
            lambda: re.search(rf"index \d+ of {members}$", (self.words or [""])[-1]), f"one of {members} receivers"
        )

    def until_printed(self, count: int) -> None:
        self.until(lambda: len(self.lines) >= count, f"{count} lines")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def interrupt(self, number: int = signal.SIGINT) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, when everything that it printed is here."""
        code = self.process.wait(PATIENCE_S)
        for thread in self._threads:
            thread.join(PATIENCE_S)
        return code


class Commands:
    """Starts commands on one bus, and ends those that are left."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._started: list[Running] = []

    def start(self, name: str, *arguments: str, **options: Any) -> Running:
        command = [sys.executable, "-m", f"rvq.cli.{name}", *arguments, "--port", str(self.port)]
        return self._start(command, **options)

    def run_demo(self) -> Running:
        return self._start([sys.executable, "-m", "rvq.cli", "demo"])

    def shell(self, script: str) -> Running:
        return self._start(["sh", "-c", script])

    def _start(self, command: list[str], **options: Any) -> Running:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running = Running(subprocess.Popen(command, **(streams | options)))
        self._started.append(running)
        return running

    def listen(self, *arguments: str, **options: Any) -> Running:
        """A listener that is in its table."""
        listener = self.start("listen", "work", *arguments, **options)
        listener.until_said(r"index \d+ of \d+")
        return listener

    def send(self, *arguments: str, data: bytes | None = None, timeout: float = PATIENCE_S) -> Running:
        """A sender that has ended."""
        sender = self.start("send", "work", *arguments, stdin=subprocess.PIPE)
        if data is not None:
            sender.write(data)
        sender.end_input()
        sender.process.wait(timeout)
        sender.ended()
        return sender

    def close(self) -> None:
        for running in self._started:
            if running.process.poll() is None:
                running.process.kill()
        for running in self._started:
            running.ended()
            for stream in (running.process.stdin, running.process.stdout, running.process.stderr):
                if stream is not None:
                    with suppress(BrokenPipeError):  # what was still to be written
                        stream.close()


def until(is_so: Callable[[], object]) -> None:
    """Until something outside, such as a file, is so. Looks often, since nothing tells."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < gives_up_at, "it never was so"
        time.sleep(0.01)
