"""The processes of a soak, each on a host of its own, and what they wrote down. Owns starting and ending them; knows no
schedule and judges nothing."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.soak.clocks import in_time_of
from bench.soak.schedule import GROUPS, HOSTS, JOURNAL, RIGHT, SENDERS
from rvq.keyfile import Keys, create_keys, new_key, read_keys, replace_keys
from tests.lan.network import Network
from tests.processes.harness import Worker, await_that

PAGE_BYTES = 4096
UNHURT = {"wall_s": 0.0, "sync_s": 0.0}


class Said(NamedTuple):
    """A line of a log."""

    event: str
    at: float
    words: list[str]


class Member(Worker):
    """One process: an incarnation of its host."""

    MODULE = "bench.soak.worker"

    def __init__(self, host: str, number: int, arguments: list[str], folder: Path, prefix: list[str]) -> None:
        self.host = host
        self.said: list[Said] = []
        self.began = time.monotonic()
        self.ended_at: float | None = None
        self.end = "runs"
        super().__init__(f"{host}.{number}", arguments, folder, prefix)

    def _take(self, event: str, at: float, words: list[str]) -> None:
        self.said.append(Said(event, at, words))
        if event == "table":
            self.members = int(words[0])
        elif event == "end":
            self.ended = True

    @property
    def has_opened(self) -> bool:
        """It is on the bus, and has said so."""
        return any(said.event in ("table", "stream") for said in self.read().said)

    def count(self, event: str) -> int:
        return sum(said.event == event for said in self.read().said)

    def mark_end(self, how: str, at: float) -> None:
        self.end, self.ended_at = how, at

    @property
    def rss_bytes(self) -> int | None:
        """None if it is gone."""
        try:
            return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE_BYTES
        except (OSError, IndexError):
            return None


def can_shift_clocks() -> bool:
    """Has this kernel time namespaces, and are we let into a new one? The id must stay the same."""
    try:
        words = [*in_time_of(1_000_000), sys.executable, "-c", "import time; print(time.monotonic())"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return float(done.stdout) > time.monotonic() + 900_000


class Crew:
    """All hosts with their processes. Ended when the block is left, whatever happened."""

    def __init__(self, folder: Path, rate: float) -> None:
        self.folder = folder
        self.shared = folder / "shared"
        self.network = Network("soak")
        self.members: list[Member] = []
        self.running: dict[str, Member] = {}
        self.shifts_clocks = can_shift_clocks()
        self._rate = rate
        self._outside: dict[str, dict[str, float]] = {}
        self._numbers: dict[str, int] = {}

    def __enter__(self) -> Crew:
        try:
            self._build()
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        self.end()

    def _build(self) -> None:
        self.shared.mkdir(parents=True)
        for host in HOSTS:
            self.network.add_host(host, "right" if host in RIGHT else "left")
            self.network.disturb(host)  # so that what this machine cannot do is known before
        create_keys(self.key_file, Keys([new_key()]))
        with sqlite3.connect(self.shared / "ledger.db") as ledger:
            # Not unique: an effect that happened twice is to be seen.
            ledger.execute("CREATE TABLE effects (id TEXT, name TEXT, at REAL)")
        ledger.close()

    def end(self) -> None:
        """Those that still run are killed, and the network is gone."""
        try:
            for member in self.members:
                if member.is_running:
                    member.process.kill()  # a stopped one, too
            for member in self.members:
                member.process.wait(30)
        finally:
            self.network.remove()

    # --- processes ------------------------------------------------------------------------------------------------

    def start(self, host: str, age_s: float = 0.0) -> Member:
        """On a machine that has been up for so long."""
        number = self._numbers.get(host, 0)
        self._numbers[host] = number + 1
        role = "send" if host in SENDERS else "record" if HOSTS[host] == JOURNAL else "receive"
        words = [role, "--name", f"{host}.{number}", "--folder", str(self.shared), "--rate", str(self._rate)]
        if role == "receive":
            words += ["--group", HOSTS[host]]
        prefix = self.network.on(host) + (in_time_of(age_s) if self.shifts_clocks and age_s else [])
        member = Member(host, number, words, self.folder, prefix)
        self.members.append(member)
        self.running[host] = member
        return member

    def start_all(self, ages: Iterable[float]) -> None:
        """Receivers and recorders, awaited until each group is complete; then the senders."""
        starts = iter(ages)
        for group in GROUPS:
            for host in of_group(group):
                self.start(host, next(starts))
        await_that(self._groups_are_complete, "all receivers found each other", story=lambda: self.words)
        for host in SENDERS:
            self.start(host, next(starts))
        await_that(self._all_send, "all senders found the groups", story=lambda: self.words)

    def _all_send(self) -> bool:
        return all(self.running[host].count("write") for host in SENDERS)

    def _groups_are_complete(self) -> bool:
        self.read()
        for member in self.running.values():
            member.check_health()
        return all(self.running[host].members == len(of_group(HOSTS[host])) for host in self.running)

    def read(self) -> None:
        for member in self.members:
            member.read()

    @property
    def words(self) -> str:
        """The end of what each says."""
        return "".join(f"{member.name}:\n{member.tail[-600:]}\n" for member in self.running.values())

    # --- what they share, and what is done to their hosts ---------------------------------------------------------

    @property
    def key_file(self) -> Path:
        return self.shared / "bus.key"

    def add_key(self) -> None:
        keys = read_keys(self.key_file)
        replace_keys(self.key_file, Keys([*keys.live.values(), new_key()], keys.in_use))

    def use_key(self) -> None:
        """The one that was added."""
        keys = read_keys(self.key_file)
        live = list(keys.live.values())
        replace_keys(self.key_file, Keys(live, next(key for key in live if key != keys.in_use)))

    def drop_keys(self) -> None:
        in_use = read_keys(self.key_file).in_use
        replace_keys(self.key_file, Keys([in_use]))

    def set_wall(self, host: str, off_s: float) -> None:
        self._tell(host, wall_s=off_s)

    def set_sync(self, host: str, more_s: float) -> None:
        self._tell(host, sync_s=more_s)

    def _tell(self, host: str, **orders: float) -> None:
        """A whole file or none: it is renamed."""
        self._outside[host] = {**self._outside.get(host, UNHURT), **orders}
        path = self.shared / f"{host}.outside"
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(self._outside[host]))
        beside.replace(path)


def of_group(group: str) -> list[str]:
    return [host for host, of in HOSTS.items() if of == group]


def effects(shared: Path) -> Iterator[tuple[str, str, float]]:
    """(message, process, when) of each effect in the ledger's file."""
    ledger = sqlite3.connect(shared / "ledger.db")
    try:
        yield from ledger.execute("SELECT id, name, at FROM effects ORDER BY at")
    finally:
        ledger.close()
