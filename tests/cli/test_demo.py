"""The demo, as somebody sees it who meets rvq for the first time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rvq.cli import demo
from tests.cli.processes import Commands, until


def test_a_free_port_is_free_and_below_those_that_the_kernel_hands_out() -> None:
    assert 20_000 <= demo.free_port() < 30_000


def children_of(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_it_ends_well_and_leaves_nobody_behind(commands: Commands) -> None:
    began = time.monotonic()
    play = commands.run_demo()
    play.until(lambda: any("is killed (SIGKILL)" in text for text in play.texts))
    children = children_of(play.process.pid)
    assert play.ended() == 0, play.texts
    assert time.monotonic() - began < 20
    assert play.words == []
    told = "\n".join(play.texts)
    assert re.search(r"^20,000 sent, 20,000 handled, 0 lost; ", play.texts[-1])
    assert re.search(r"^  B \(killed\) +[\d,]+ +0$", told, re.MULTILINE)
    assert "sent 20000, done 20000, undone 0" in told
    assert children and all(map(is_gone, children))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nobody_behind(commands: Commands, number: int) -> None:
    play = commands.run_demo()
    play.until(lambda: any("the sender starts" in text for text in play.texts))
    until(lambda: len(children_of(play.process.pid)) == 3)
    children = children_of(play.process.pid)
    play.interrupt(number)
    assert play.ended() == 1
    assert play.texts[-1] == "Interrupted." and play.words == []
    assert all(map(is_gone, children))


def test_a_bus_that_cannot_be_is_wrong_use() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "rvq.cli", "demo", "--port", "0"], capture_output=True, text=True, timeout=30
    )
    assert shown.returncode == 2 and shown.stderr.startswith("rvq demo: port=0 is not a port")
