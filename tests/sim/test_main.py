"""`python -m rvq.sim`: swarms and replays, what they print, and with which code they end."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rvq.sim.__main__ import main, replay_command, run_seeds
from rvq.sim.mutants import MUTANTS


def test_a_swarm_without_violations_ends_with_0_and_says_how_much_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "4", "--start", "6", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "4 of 4 worlds" in err and ": 0 bad" in err and "messages" in err


def test_a_swarm_with_violations_ends_with_1_and_prints_the_command_that_replays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "9", "--jobs", "1", "--mutant", "no-reports", "--stop-after", "2"]) == 1
    out, err = capsys.readouterr()
    assert "lost:" in out
    assert "replay: python -m rvq.sim --seed 0 --mutant no-reports" in out
    assert out.count("replay:") == 2, "it stops when it has seen enough"
    assert "2 of 9 worlds" in err and ": 2 bad" in err


def test_workers_share_a_swarm(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "12", "--jobs", "2"]) == 0
    assert "12 of 12 worlds" in capsys.readouterr().err


def test_a_replay_prints_the_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "4"]) == 0
    out, _ = capsys.readouterr()
    assert out.startswith("seed 4: ") and out.strip().endswith("all promises kept")


def test_a_bad_replay_says_how_to_get_its_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--mutant", "no-reports"]) == 1
    assert "its story: python -m rvq.sim --seed 1 --mutant no-reports -v" in capsys.readouterr().err


def test_a_replay_tells_the_story_as_often_as_it_is_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = []
    for level in ([], ["-v"], ["-vv"]):
        assert main(["--seed", "4", *level]) == 0
        lengths.append(len(capsys.readouterr().out.splitlines()))
    assert lengths[0] == 1 < 20 < lengths[1] < lengths[2] / 4


def test_the_printed_command_runs_and_gives_the_same_verdict() -> None:
    command = [sys.executable, *replay_command(0, "no-reports").split()[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    [verdict] = run_seeds([0], "no-reports")
    assert done.stdout.strip() == str(verdict)


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--jobs", "-1"], ["--seed", "x"], ["--mutant", "nobody"]])
def test_what_makes_no_sense_is_refused_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m rvq.sim" in capsys.readouterr().err


def test_help_names_every_mutant(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    words = capsys.readouterr().out.replace("\n", "").replace(" ", "")
    assert all(name in words for name in MUTANTS)
