"""Workers as processes, what their logs say, and the verdict on it: lost, invented, repeated, out of order.

Tests await what the logs say and never sleep, except where time passing is the point. Nothing here is about speed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

from tests.processes.worker import WATCH_S

ROOT = Path(__file__).parents[2]

PATIENCE_S = 60.0
"""For everything that must come to pass. Long, because a busy machine is not a fault of rvq."""

UNREPORTED_S = 0.3
"""What a receiver handled so shortly before its end may be handled again. A report is due every 20 ms; the rest is for
processes that wait for their turn on a busy machine."""

LEASE_S = 1.0
"""The default: one that is cut off from a sender starts nothing of its stream for longer than this."""


def await_that(
    condition: Callable[[], object], what: str, within: float = PATIENCE_S, story: Callable[[], str] = str
) -> None:
    """Returns as soon as the condition holds; fails with `what` did not happen, and the story of it."""
    deadline = time.monotonic() + within
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}\n{story()}")
        time.sleep(0.01)


@dataclass
class Handling:
    """One message in one receiver's hands."""

    message: str
    by: str
    start: float
    attempt: int
    redelivered: bool
    key: str
    finish: float | None = None


class Worker:
    """One process and its log, read as far as it is written."""

    MODULE = "tests.processes.worker"
    """What it runs."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path, prefix: Sequence[str] = ()) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        self._errors = folder / f"{name}.err"
        self._log.touch()
        self._offset = 0
        command = [*prefix, sys.executable, "-m", self.MODULE, *arguments, "--log", str(self._log)]
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        self.handlings: list[Handling] = []
        self.written: list[tuple[int, int]] = []
        self.members = 0
        self.tables: list[int] = []
        """How many members each table had that it saw in force."""
        self.naps: list[float] = []
        self.has_sent = False
        self.undone: int | None = None
        self.ended = False

    def read(self) -> Self:
        """Takes in what is new in the log."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        text = text[: text.rfind(b"\n") + 1]
        self._offset += len(text)
        for line in text.decode().splitlines():
            event, at, *words = line.split()
            self._take(event, float(at), words)
        return self

    def _take(self, event: str, at: float, words: list[str]) -> None:
        match event, words:
            case "start", [message, attempt, redelivered, key]:
                self.handlings.append(Handling(message, self.name, at, int(attempt), redelivered == "1", key))
            case "finish", [message]:
                assert self.handlings[-1].message == message
                self.handlings[-1].finish = at
            case "write", [first, last]:
                self.written.append((int(first), int(last)))
            case "table", [members, _]:
                self.members = int(members)
                self.tables.append(self.members)
            case "nap", [since]:
                self.naps.append(float(since))
            case "sent", []:
                self.has_sent = True
            case "done", [undone]:
                self.undone = int(undone)
            case "end", []:
                self.ended = True

    @property
    def started(self) -> int:
        """How many messages it has started."""
        return len(self.read().handlings)

    @property
    def is_handling(self) -> bool:
        """It is in the middle of a message."""
        handlings = self.read().handlings
        return bool(handlings) and handlings[-1].finish is None

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    @property
    def words(self) -> str:
        """What it said on stderr."""
        return self._errors.read_text(errors="replace")

    def send_signal(self, number: signal.Signals) -> float:
        """When it was sent."""
        self.process.send_signal(number)
        return time.monotonic()

    def terminate(self) -> float:
        return self.send_signal(signal.SIGTERM)

    def kill(self) -> float:
        """kill -9. When it was dead."""
        self.process.kill()
        self.process.wait(PATIENCE_S)
        return time.monotonic()

    def stop(self) -> float:
        """SIGSTOP. When it had stopped."""
        self.process.send_signal(signal.SIGSTOP)
        await_that(self._is_stopped, f"{self.name} stopped")
        return time.monotonic()

    def stop_while_handling(self) -> float:
        """SIGSTOP in the middle of a message: at no other moment is it known what it has started."""
        for _ in range(1000):
            at = self.stop()
            if self.is_handling:
                return at
            self.resume()
            time.sleep(0.001)
        raise AssertionError(f"{self.name} handles nothing")

    def resume(self) -> float:
        """SIGCONT. When it was sent: taken before, so nothing that follows is earlier."""
        at = time.monotonic()
        self.process.send_signal(signal.SIGCONT)
        return at

    def _is_stopped(self) -> bool:
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state == "T"

    def await_end(self, within: float = PATIENCE_S) -> None:
        """It ends by itself, in good order."""
        await_that(lambda: not self.is_running, f"{self.name} ended", within, lambda: self.tail)
        self.check_health()
        assert self.read().ended, f"{self.name} did not finish its work:\n{self.tail}"

    def check_health(self) -> None:
        """It runs, or has ended in good order, or was killed by the test."""
        status = self.process.poll()
        assert status in (None, 0, -signal.SIGKILL), f"{self.name} failed with {status}:\n{self.tail}"

    @property
    def tail(self) -> str:
        """The end of what it said."""
        return self.words[-4000:]


class Fleet:
    """All processes of one test, on one bus. Ends them all, whatever happened."""

    def __init__(self, folder: Path, port: int, interface: str = "lo") -> None:
        self._folder = folder
        self._bus = ["--port", str(port), "--interface", interface]
        self.receivers: dict[str, Worker] = {}
        self.senders: dict[str, Worker] = {}

    def receiver(self, name: str, label: str = "work", *, prefix: Sequence[str] = (), **options: object) -> Worker:
        worker = self._start("receive", name, label, prefix, options)
        self.receivers[name] = worker
        return worker

    def start_receivers(self, *names: str, label: str = "work", **options: object) -> list[Worker]:
        """Started together, and awaited until each sees all of them."""
        workers = [self.receiver(name, label, **options) for name in names]
        self.await_members(workers)
        return workers

    def sender(self, name: str, label: str = "work", *, prefix: Sequence[str] = (), **options: object) -> Worker:
        """Sends `count` messages, or goes on until `finish` is called."""
        worker = self._start("send", name, label, prefix, {"name": name, **options})
        self.senders[name] = worker
        return worker

    def _start(self, role: str, name: str, label: str, prefix: Sequence[str], options: Mapping[str, object]) -> Worker:
        words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
        return Worker(name, [role, label, *self._bus, *words], self._folder, prefix)

    def await_members(self, workers: Sequence[Worker], count: int | None = None) -> None:
        """Until each of them sees that many members, or as many as they are."""
        count = len(workers) if count is None else count
        self._await_all(workers, lambda: all(worker.read().members == count for worker in workers), f"{count} members")

    def await_started(self, count: int, workers: Iterable[Worker] | None = None) -> None:
        """Until they have started that many messages between them."""
        chosen = list(self.receivers.values() if workers is None else workers)
        self._await_all(chosen, lambda: sum(worker.started for worker in chosen) >= count, f"{count} messages started")

    def _await_all(self, workers: Sequence[Worker], condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            for worker in workers:
                worker.check_health()
            return condition()

        names = ", ".join(worker.name for worker in workers)
        await_that(holds, f"{what} at {names}", story=lambda: "".join(f"{w.name}:\n{w.tail}" for w in workers))

    def await_more(self, count: int, *workers: Worker) -> None:
        """Until they (or all receivers) have started that many messages more, in mid-stream: a sender still sends."""
        chosen = workers or tuple(self.receivers.values())
        self.await_started(sum(worker.started for worker in chosen) + count, chosen)
        assert any(sender.is_running and not sender.read().has_sent for sender in self.senders.values())

    def finish(self) -> None:
        """The senders that go on are told to end; until each has seen all of its messages done, and left."""
        for sender in self.senders.values():
            if sender.is_running:
                sender.terminate()
        self.await_senders()

    def await_senders(self) -> None:
        """Until each sender has sent its messages and seen all of them done, and left."""
        for sender in self.senders.values():
            if sender.process.poll() != -signal.SIGKILL:
                sender.await_end()
                assert sender.undone == 0

    def release(self, *names: str) -> None:
        """The receivers (all that run, unless named) are asked to leave, and do."""
        workers = [self.receivers[name] for name in names] or [w for w in self.receivers.values() if w.is_running]
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.await_end()

    def end(self) -> None:
        workers = [*self.senders.values(), *self.receivers.values()]
        for worker in workers:
            if worker.is_running:
                worker.process.kill()  # a stopped one, too
        for worker in workers:
            worker.process.wait(PATIENCE_S)
        raised = [worker for worker in workers if "Traceback" in worker.words]
        assert not raised, f"{raised[0].name} raised:\n{raised[0].words[-4000:]}"

    def verdict(self, receivers: Iterable[Worker] | None = None, senders: Iterable[Worker] | None = None) -> Verdict:
        """What became of the messages of these senders at these receivers (all, unless named)."""
        sent = {
            f"{sender.name}/{number}"
            for sender in (self.senders.values() if senders is None else senders)
            for first, last in sender.read().written
            for number in range(first, last + 1)
        }
        chosen = list(self.receivers.values() if receivers is None else receivers)
        handled = [handling for worker in chosen for handling in worker.read().handlings]
        return Verdict(sent, handled, {worker.name: worker.naps for worker in chosen})


@dataclass
class Verdict:
    """Multisets of what was sent and what was handled, compared."""

    sent: set[str]
    handled: list[Handling]
    naps: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """When a busy machine gave a receiver no turn for long, from that time on: as good as SIGSTOP."""
    by_message: dict[str, list[Handling]] = field(init=False)
    """In the order of their starts."""

    def __post_init__(self) -> None:
        self.by_message = defaultdict(list)
        for handling in sorted(self.handled, key=lambda handling: handling.start):
            self.by_message[handling.message].append(handling)

    @property
    def lost(self) -> set[str]:
        return self.sent - self.by_message.keys()

    @property
    def invented(self) -> set[str]:
        return self.by_message.keys() - self.sent

    @property
    def repeated(self) -> dict[str, list[Handling]]:
        return {message: handlings for message, handlings in self.by_message.items() if len(handlings) > 1}

    def assert_nothing_lost_or_invented(self) -> None:
        assert not self.lost, f"{len(self.lost)} of {len(self.sent)} lost: {sorted(self.lost)[:20]}"
        assert not self.invented, f"{len(self.invented)} invented: {sorted(self.invented)[:20]}"

    def assert_all_once(self) -> None:
        self.assert_nothing_lost_or_invented()
        self.assert_repeats_only({})

    def assert_repeats_only(self, faults: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        """Only what a receiver handled in one of its spans (from, to) of `faults` may have been handled again."""
        wrong = {
            message: handlings
            for message, handlings in self.repeated.items()
            if not all(_within(handling, self._spans(handling.by, faults)) for handling in handlings[:-1])
        }
        assert not wrong, f"{len(wrong)} repeated without a cause: {dict(list(wrong.items())[:5])}"
        unsaid = [again for handlings in self.repeated.values() for again in handlings[1:] if not again.redelivered]
        assert not unsaid, f"{len(unsaid)} repeated and not marked as redelivered: {unsaid[:5]}"

    def _spans(self, name: str, faults: Mapping[str, Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
        return [*faults.get(name, ()), *(before_death(nap + WATCH_S) for nap in self.naps.get(name, ()))]

    def assert_one_at_a_time(self, stopped: Iterable[str] = ()) -> None:
        """No message was started again while another receiver handled it, unless that one was `stopped` meanwhile."""
        for message, handlings in self.repeated.items():
            for former, latter in pairwise(handlings):
                if former.by in stopped or former.finish is None:
                    continue
                napped = any(former.start <= nap + WATCH_S <= former.finish for nap in self.naps.get(former.by, ()))
                assert napped or former.finish <= latter.start, f"{message} overlaps: {handlings}"

    def assert_keys_in_order(self) -> None:
        """For each key the handlings that counted (the last of each message) went one by one, as they were sent."""
        by_key: dict[str, list[Handling]] = defaultdict(list)
        for handlings in self.by_message.values():
            by_key[handlings[-1].key].append(handlings[-1])
        assert "-" not in by_key
        for key, handlings in by_key.items():
            handlings.sort(key=lambda handling: int(handling.message.partition("/")[2]))
            for former, latter in pairwise(handlings):
                assert former.finish is not None, former
                assert former.finish <= latter.start, f"key {key} out of order: {former}, then {latter}"


def _within(handling: Handling, spans: Iterable[tuple[float, float]]) -> bool:
    """It ended, or never ended, or began, in one of the spans: so it may not have been acknowledged."""
    end = float("inf") if handling.finish is None else handling.finish
    return any(handling.start <= to and end >= since for since, to in spans)


def before_death(at: float) -> tuple[float, float]:
    """The span of what a receiver that died (or was stopped) at this time may not have reported."""
    return at - UNREPORTED_S, at


def while_cut(since: float, to: float) -> tuple[float, float]:
    """The span of what a receiver may not have reported that was cut off from a sender."""
    return since - UNREPORTED_S, to
