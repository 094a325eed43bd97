"""The demo, as somebody sees it who meets rvq for the first time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import rvq.cli
from rvq.cli import demo
from rvq.cli.demo import Play
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


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"RVQ_INTERFACE": "nosuch0"}, "no interface 'nosuch0'"),
        ({"RVQ_PORT": "0"}, "port=0 is not a port"),
        ({"RVQ_ADDRESS": "10.0.0.0/16"}, "is not inside 224.0.0.0/4"),
    ],
)
def test_it_plays_on_the_bus_of_the_environment(
    environment: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert rvq.cli.main(["demo"]) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.err.count("\n") == 1 and shown.out == ""


def test_a_port_of_the_environment_is_the_port_of_the_play(
    port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[list[str]] = []

    async def play(play: Play) -> int:
        played.append(play._bus)
        return 0

    monkeypatch.setenv("RVQ_PORT", str(port))
    monkeypatch.setattr("rvq.cli.demo._run", play)
    assert rvq.cli.main(["demo"]) == 0
    assert played == [["--interface", "lo", "--port", str(port), "--address", "239.192.0.0/16"]]
    assert f"on port {port} of lo" in capsys.readouterr().out


def test_a_bus_that_cannot_be_is_wrong_use() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "rvq.cli", "demo", "--port", "0"], capture_output=True, text=True, timeout=30
    )
    assert shown.returncode == 2 and shown.stderr.startswith("rvq demo: port=0 is not a port")
