"""Soaks for real: a short one with a fixed schedule, in which all is accounted for, and one that is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bench.soak.__main__ import CANNOT, INTERRUPTED, command, main, parse
from bench.soak.schedule import Kind, draw
from tests.lan.network import run

ROOT = Path(__file__).parents[3]
SEED, MINUTES, RATE = 20, 0.4, 8
"""Twenty-four seconds in which most can happen: see below."""
PATIENCE_S = 240


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.soak", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_a_short_soak_accounts_for_every_message(can_have_hosts: None, tmp_path: Path) -> None:
    with start("--minutes", str(MINUTES), "--seed", str(SEED), "--rate", str(RATE), "--results", str(tmp_path)) as soak:
        words, _ = soak.communicate(timeout=PATIENCE_S)
    assert soak.returncode == 0, words
    assert "every message is accounted for" in words
    [folder] = tmp_path.iterdir()
    kept = json.loads((folder / "report.json").read_text())
    assert kept["ok"] and kept["counts"]["sent"] > 100
    assert kept["command"] in words
    wanted = {(fault.kind.value, fault.host) for fault in draw(SEED, MINUTES * 60)}
    happened = {(fault["kind"], fault["host"]) for fault in kept["faults"]}
    assert happened <= wanted and len(happened) > len(wanted) * 0.7, "but for those whom another fault spared"
    assert not (folder / "logs").exists(), "only kept if something is wrong, or when asked for"


def test_the_short_soak_has_everything_that_can_happen() -> None:
    faults = draw(SEED, MINUTES * 60)
    assert {fault.kind for fault in faults} == set(Kind)
    assert {fault.host[0] for fault in faults if fault.kind is Kind.KILL} == {"a", "b", "j", "s"}


def test_one_that_is_interrupted_leaves_no_process_and_no_network(can_have_hosts: None, tmp_path: Path) -> None:
    with start("--minutes", "5", "--seed", "1", "--results", str(tmp_path)) as soak:
        assert soak.stdout is not None
        for line in soak.stdout:
            if "kill -9" in line:
                break
        workers = workers_of(soak.pid)
        assert workers
        soak.send_signal(signal.SIGINT)
        words, _ = soak.communicate(timeout=PATIENCE_S)
    assert soak.returncode == INTERRUPTED and "are gone" in words
    assert f"-soak-{soak.pid}-" not in run("ip", "netns", "list")
    assert not [pid for pid in workers if os.path.exists(f"/proc/{pid}")]
    assert not list(tmp_path.iterdir())


def workers_of(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"bench.soak.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_without_root_it_says_why_there_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["--minutes", "1"]) == CANNOT
    assert "needs root" in capsys.readouterr().out


def test_a_schedule_can_be_looked_at_beforehand(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "1", "--seed", "3", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(draw(3, 60))


def test_a_command_replays_a_schedule() -> None:
    assert command(7, 180, 15.0) == "make soak MINUTES=3 SEED=7"
    assert command(7, 180, 40.0) == "make soak MINUTES=3 SEED=7 RATE=40"
    assert parse(["--minutes", "3"]).seed != parse(["--minutes", "3"]).seed


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--rate", "0"], ["--minutes", "nan"]])
def test_what_makes_no_sense_is_refused_with_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parse(words)
    assert refused.value.code == 2
    assert "give" in capsys.readouterr().err
