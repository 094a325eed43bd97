"""Workers as processes, what they say and log, and the verdict: lost, repeated, invented."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bench.group.worker import SENDER_SHIFT, TIMED

ROOT = Path(__file__).parents[2]

PATIENCE_S = 110.0
"""No bench takes longer."""


class Trouble(Exception):
    """A bench could not be measured; says why."""


class Said(NamedTuple):
    """A line of a worker."""

    event: str
    at: float
    words: list[str]


class Handling(NamedTuple):
    """A message in a receiver's hands."""

    number: int
    sent: float
    at: float


class Worker:
    """One process. A thread reads what it says."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, prefix: Sequence[str] = ()) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._errors = folder / f"{name}.err"
        command = [*prefix, sys.executable, "-m", "bench.group.worker", *arguments, "--log", str(self.log)]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        self._lines: list[Said] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with os.fdopen(os.dup(self.process.stdout.fileno()), "r") as lines:
            for line in lines:
                event, at, *words = line.rstrip("\n").split(" ", 2)
                with self._news:
                    self._lines.append(Said(event, float(at), words))
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def when(self, event: str, *, that: Callable[[Said], bool] = lambda said: True, within: float = PATIENCE_S) -> Said:
        """The first line of that kind, awaited."""
        with self._news:
            self._news.wait_for(lambda: self._find(event, that) is not None or self._ended, within)
            found = self._find(event, that)
        if found is None:
            raise Trouble(f"{self.name} did not say {event!r} within {within:g} s{self._words()}")
        return found

    def _find(self, event: str, that: Callable[[Said], bool]) -> Said | None:
        return next((said for said in self._lines if said.event == event and that(said)), None)

    def await_members(self, count: int) -> Said:
        return self.when("table", that=lambda said: int(said.words[0]) == count, within=30)

    def go(self) -> float:
        """Lets one begin that was started with `hold`."""
        assert self.process.stdin is not None
        at = time.monotonic()
        self.process.stdin.write(b"\n")
        return at

    @property
    def stats(self) -> dict[str, Any]:
        facts: dict[str, Any] = json.loads(self.when("stats").words[0])
        return facts

    @property
    def rss_bytes(self) -> int:
        """The most that it ever had in memory. One that has ended has said so; if not, that is Trouble."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            status = ""
        line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return (int(line.split()[1]) if line else int(self.stats["rss_kib"])) * 1024

    def signal(self, number: signal.Signals) -> float:
        """When it was sent."""
        self.process.send_signal(number)
        return time.monotonic()

    def kill(self) -> float:
        """kill -9. The moment before: nothing that it did can be much later."""
        at = time.monotonic()
        self.process.kill()
        self.process.wait(10)
        return at

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def numbers(self) -> array[int]:
        """The messages that it was handed."""
        found = array("Q")
        raw = self.log.read_bytes() if self.log.exists() else b""
        found.frombytes(raw[: len(raw) // 8 * 8])
        return found

    def handlings(self) -> list[Handling]:
        """As `numbers`, for one that logged times."""
        raw = self.log.read_bytes() if self.log.exists() else b""
        return [Handling(*fields) for fields in TIMED.iter_unpack(raw[: len(raw) // TIMED.size * TIMED.size])]

    def _words(self) -> str:
        text = self._errors.read_text(errors="replace").strip()
        return f":\n{text[-2000:]}" if text else ""


class Fleet:
    """All processes of one bench, on a bus of their own. Ended when the block is left, whatever happened."""

    def __init__(self, *, port: int | None = None, interface: str = "lo") -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rvq-bench-"))
        self._bus = ["--port", str(port or free_port()), "--interface", interface]
        self.receivers: list[Worker] = []
        self.senders: list[Worker] = []
        self.recorders: list[Worker] = []

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for worker in (*self.senders, *self.receivers, *self.recorders):
            worker.end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def receiver(self, *flags: str, prefix: Sequence[str] = (), **options: object) -> Worker:
        name = f"receiver-{len(self.receivers)}"
        worker = Worker(name, ["receive", *self._bus, *flags, *_words(options)], self._folder, prefix)
        self.receivers.append(worker)
        return worker

    def start_receivers(self, count: int, *flags: str, **options: object) -> list[Worker]:
        """Awaited until each sees all of them."""
        workers = [self.receiver(*flags, **options) for _ in range(count)]
        self.await_members(count)
        return workers

    def await_members(self, count: int) -> None:
        for worker in self.receivers:
            worker.await_members(count)

    def start_recorder(self) -> Worker:
        """Awaited until it is in its table. Its journal is in the folder of the bench, which is deleted with it."""
        worker = Worker(f"recorder-{len(self.recorders)}", ["record", *self._bus], self._folder)
        self.recorders.append(worker)
        worker.await_members(1)
        return worker

    def sender(self, count: int, *flags: str, prefix: Sequence[str] = (), **options: object) -> Worker:
        """Starts to send as soon as it can."""
        number = len(self.senders)
        words = _words({"number": number, "count": count, **options})
        worker = Worker(f"sender-{number}", ["send", *self._bus, *flags, *words], self._folder, prefix)
        self.senders.append(worker)
        return worker

    def await_senders(self) -> float:
        """Until everything is done at each. The seconds from the first beginning to the last end."""
        done = [sender.when("done") for sender in self.senders]
        undone = sum(int(said.words[0]) for said in done)
        if undone:
            raise Trouble(f"{undone} messages were not done")
        return max(said.at for said in done) - min(sender.when("begin").at for sender in self.senders)

    def release(self) -> None:
        """Receivers that still run leave in good order."""
        running = [w for w in (*self.receivers, *self.recorders) if w.process.poll() is None]
        for worker in running:
            worker.signal(signal.SIGTERM)
        for worker in running:
            worker.when("end", within=20)


@dataclass(frozen=True)
class Verdict:
    """What became of the messages."""

    sent: int
    lost: int
    repeated: int
    invented: int

    @property
    def clean(self) -> bool:
        return not (self.lost or self.repeated or self.invented)


def judge(counts: Sequence[int], handled: Iterable[Iterable[int]]) -> Verdict:
    """`counts` messages of each sender against the numbers that the receivers logged."""
    seen = [bytearray(count) for count in counts]
    place_mask = (1 << SENDER_SHIFT) - 1
    invented = repeated = 0
    for numbers in handled:
        for number in numbers:
            try:
                of_sender, place = seen[number >> SENDER_SHIFT], number & place_mask
                if of_sender[place]:
                    repeated += 1
                of_sender[place] = 1
            except IndexError:
                invented += 1
    lost = sum(of_sender.count(0) for of_sender in seen)
    return Verdict(sum(counts), lost, repeated, invented)


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that so many percent of the others do not exceed."""
    if not values:
        raise Trouble("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def free_port() -> int:
    """A UDP port that nobody uses now. Below those that the kernel hands out."""
    for port in range(10_000 + os.getpid() % 5_000, 32_000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(("", port))
            except OSError:
                continue
            return port
    raise Trouble("no free UDP port")


def _words(options: dict[str, object]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]
