"""On real clusters of this machine: executors and drivers that are killed, and each row once none the less."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pytest

from rvq.bus import Bus
from tests.spark.conftest import ROOT, environment
from tests.spark.listening import Listening
from tests.spark.talking import Talking
from tests.spark.writing import write_bodies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

BODIES = [f"{n}" for n in range(20_000)]
PATIENCE_S = 180


class Processes:
    """What a test starts, each in a session of its own, and all of it killed in the end."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self._started: list[subprocess.Popen[str]] = []
        self._folder = folder

    def start(self, *command: str) -> subprocess.Popen[str]:
        name = self._folder / f"{len(self._started)}"
        with name.with_suffix(".out").open("w") as out, name.with_suffix(".log").open("w") as errors:
            process = self._popen(command, out, errors)
        self._started.append(process)
        return process

    def _popen(self, command: tuple[str, ...], out: IO[str], errors: IO[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment() | {"SPARK_HOME": str(self.home), "PYTHONUNBUFFERED": "1"},
            stdout=out,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    def drive(self, master: str, journal: Path, out: Path, *options: str) -> subprocess.Popen[str]:
        command = (sys.executable, "-m", "tests.spark.driving", master, str(journal), str(out), *options)
        return self.start(*command)

    def finish(self, process: subprocess.Popen[str]) -> str:
        """What it said, once it has ended in good order."""
        assert process.wait(PATIENCE_S) == 0, self.log(process)
        return (self._folder / f"{self._started.index(process)}.out").read_text()

    def log(self, process: subprocess.Popen[str]) -> str:
        return (self._folder / f"{self._started.index(process)}.log").read_text()[-3000:]

    def kill(self, process: subprocess.Popen[str]) -> None:
        """kill -9 of it and of all that it started: Spark's workers have process groups of their own."""
        for pid, _ in self.session_of(process):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)

    def executors_of(self, process: subprocess.Popen[str]) -> list[int]:
        return [pid for pid, words in self.session_of(process) if b"CoarseGrainedExecutorBackend" in words]

    def session_of(self, process: subprocess.Popen[str]) -> list[tuple[int, bytes]]:
        """It and all below it, with their command lines."""
        found = []
        for path in Path("/proc").iterdir():
            if path.name.isdecimal():
                try:
                    words = (path / "cmdline").read_bytes()
                    session = int((path / "stat").read_text().rpartition(") ")[2].split()[3])
                except OSError:
                    continue  # it has just ended
                if session == process.pid:
                    found.append((int(path.name), words))
        return found

    def end(self) -> None:
        for process in self._started:
            self.kill(process)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    folder = tmp_path / "processes"
    folder.mkdir()
    started = Processes(folder)
    yield started
    started.end()


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bodies(tmp_path_factory.mktemp("cluster"), BODIES, per_frame=50, per_commit=2, segment_bytes=100_000)


def wait_for(what: str, process: subprocess.Popen[str], processes: Processes, is_so: object) -> None:
    assert callable(is_so)
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None, f"it ended before {what}: {processes.log(process)}"
        assert time.monotonic() < until, f"waited for {what}: {processes.log(process)}"
        time.sleep(0.02)


def commits(out: Path) -> int:
    folder = out / "checkpoint/commits"
    return sum(path.name.isdecimal() for path in folder.iterdir()) if folder.exists() else 0


def rows(spark: SparkSession, out: Path) -> Counter[str]:
    """As a reader that honours what the sink has committed."""
    return Counter(row.value for row in spark.read.parquet(str(out / "parquet")).collect())


def test_a_driver_that_is_killed_goes_on_from_its_checkpoint(
    spark: SparkSession, processes: Processes, journal: Path, tmp_path: Path
) -> None:
    driver = processes.drive("local[2]", journal, tmp_path)
    wait_for("two batches", driver, processes, lambda: commits(tmp_path) >= 3)
    processes.kill(driver)
    killed_at = commits(tmp_path)
    processes.finish(processes.drive("local[2]", journal, tmp_path, "--rows", "10000"))
    assert commits(tmp_path) > killed_at, "there was something left to do"
    assert rows(spark, tmp_path) == Counter(BODIES)


def test_an_executor_that_is_killed_costs_no_row(
    spark: SparkSession, processes: Processes, journal: Path, tmp_path: Path
) -> None:
    driver = processes.drive("local-cluster[2,1,1024]", journal, tmp_path, "--rows", "2000")
    wait_for("a batch", driver, processes, lambda: commits(tmp_path) >= 2)
    victim, *_ = processes.executors_of(driver)
    os.kill(victim, signal.SIGKILL)
    processes.finish(driver)
    assert rows(spark, tmp_path) == Counter(BODIES)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def test_a_master_and_two_workers_read_it_all(
    spark: SparkSession, processes: Processes, journal: Path, tmp_path: Path
) -> None:
    port = free_port()
    spark_class = str(processes.home / "bin/spark-class")
    local = ("--host", "127.0.0.1", "--webui-port", "0")
    master = processes.start(spark_class, "org.apache.spark.deploy.master.Master", *local, "--port", str(port))
    url = f"spark://127.0.0.1:{port}"
    wait_for(
        "the master", master, processes, lambda: "successfully started service 'sparkMaster'" in log(processes, master)
    )
    for _ in range(2):
        processes.start(spark_class, "org.apache.spark.deploy.worker.Worker", *local, "-c", "1", "-m", "700m", url)
    wait_for("two workers", master, processes, lambda: log(processes, master).count("registering worker") >= 2)
    said = processes.finish(processes.drive(url, journal, tmp_path, "--rows", "10000"))
    assert said == "executors 2\n"
    assert rows(spark, tmp_path) == Counter(BODIES)


def log(processes: Processes, process: subprocess.Popen[str]) -> str:
    return processes.log(process).lower().replace("sparkmaster", "sparkMaster")


def test_a_sink_whose_driver_is_killed_repeats_only_what_was_on_its_way(
    processes: Processes, journal: Path, tmp_path: Path, bus: Bus
) -> None:
    options = ("--port", str(bus.port), "--rows", "5000", "--window", "100")
    with Listening(bus) as listening:
        driver = processes.drive("local[2]", journal, tmp_path, *options)
        wait_for("messages", driver, processes, lambda: len(listening.messages) > 1000)
        processes.kill(driver)
        assert len(listening.messages) < len(BODIES), "there was something left to send"
        processes.finish(processes.drive("local[2]", journal, tmp_path, *options))
    counts = Counter(listening.bodies)
    assert counts.keys() == set(BODIES), "nothing is lost"
    twice = {body for body, count in counts.items() if count > 1}
    again = {message.body for message in listening.messages if (message.headers or {}).get("again")}
    assert twice <= again, "what comes twice says so"
    assert max(counts.values()) <= 2
    assert len(again) <= 100


def test_a_driver_that_records_the_bus_is_killed_in_mid_stream_and_has_each_row_once(
    spark: SparkSession, processes: Processes, tmp_path: Path, bus: Bus
) -> None:
    def drive() -> subprocess.Popen[str]:
        return processes.drive("local[2]", Path("-"), tmp_path, "--bus", str(bus.port), "--rows", "1000000")

    with Talking(bus) as talking:
        driver = drive()
        wait_for("three batches", driver, processes, lambda: commits(tmp_path) >= 4)
        processes.kill(driver)
        driver = drive()
        wait_for("what the sender held", driver, processes, lambda: talking.undone)
        bodies = talking.finish(PATIENCE_S)
        (tmp_path / "stop").touch()
        processes.finish(driver)
    assert len(bodies) > 1000
    assert rows(spark, tmp_path) == Counter(bodies)


def test_the_tests_run_what_is_in_this_folder() -> None:
    assert environment()["PYTHONPATH"] == str(ROOT)
