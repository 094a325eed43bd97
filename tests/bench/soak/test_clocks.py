"""Clocks of a soak: the wall clock of a process can be set, and its logs are by the machine's own time all the same."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.soak.clocks import TrueClock, Wall, in_time_of, offset_s
from bench.soak.crew import can_shift_clocks

ROOT = Path(__file__).parents[3]

LINES = ["monotonic        1000 500000000", "boottime            7         0"]

CODE = "import time; from bench.soak.clocks import TrueClock; print(time.monotonic(), TrueClock()())"


def test_the_offset_of_a_time_namespace_is_read() -> None:
    assert offset_s(LINES) == 1000.5
    assert offset_s(["boottime 7 0"]) == offset_s([]) == 0.0


def test_here_the_true_clock_is_the_machines() -> None:
    before = time.monotonic()
    assert before <= TrueClock()() <= time.monotonic()


def test_on_a_host_of_another_age_the_true_clock_is_the_machines_still() -> None:
    if not can_shift_clocks():
        pytest.skip("needs root and a kernel with time namespaces")
    before = time.monotonic()
    words = [*in_time_of(5_000_000), sys.executable, "-c", CODE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    theirs, true = map(float, done.stdout.split())
    assert before <= true <= time.monotonic()
    assert theirs - true == pytest.approx(5_000_000, abs=1)


def test_a_wall_clock_is_set_for_this_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", time.time)  # put back afterwards
    real, wall = time.time, Wall()
    wall.install()
    wall.off_s = -3600.0
    assert time.time() == pytest.approx(real() - 3600, abs=1)
    assert real() > time.time()
