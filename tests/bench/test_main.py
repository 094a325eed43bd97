"""`python -m bench`: what it prints, keeps and answers. The benches here are made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench import __main__, figures
from bench.figures import Bench, Figure, Skipped
from bench.group.fleet import Trouble

Run = Callable[[bool], Iterable[Figure]]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture
def bench(results: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Runs made-up benches: the exit code, and what was kept."""

    def call(*runs: Run, quick: bool = False) -> tuple[int, dict[str, Any]]:
        benches = [Bench(f"bench{number}", "made up", run) for number, run in enumerate(runs)]
        monkeypatch.setattr(__main__, "BENCHES", benches)
        code = __main__.main(["--quick"] if quick else [])
        (kept,) = results.iterdir()
        return code, json.loads(kept.read_text())

    return call


def refuse(error: Exception) -> Run:
    def run(quick: bool) -> Iterable[Figure]:
        yield Figure("before", 1)
        raise error

    return run


def lost(quick: bool) -> Iterable[Figure]:
    return [Figure("lost, repeated or invented", 1, most=0)]


def slow(quick: bool) -> Iterable[Figure]:
    return [Figure("rate", 1.0, "x pyzmq", least=4)]


def fine(quick: bool) -> Iterable[Figure]:
    return [Figure("rate", 5.0, "x pyzmq", least=4)]


def test_the_machine_the_figures_and_their_bounds_are_kept(bench: Callable[..., Any]) -> None:
    code, kept = bench(fine)
    assert code == 0
    assert {"at", "cores", "load", "memory_gib", "processor", "python", "kernel"} <= kept["machine"].keys()
    (outcome,) = kept["benches"]
    assert outcome["good"] is True
    assert outcome["figures"] == [
        {"what": "rate", "value": 5.0, "unit": "x pyzmq", "most": None, "least": 4, "good": True}
    ]


def test_the_load_that_is_kept_is_that_of_before(bench: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loads = iter([0.5, 9.0, 9.0])
    monkeypatch.setattr(figures.os, "getloadavg", lambda: (next(loads), 0.0, 0.0))
    assert bench(fine)[1]["machine"]["load"] == 0.5


@pytest.mark.parametrize("wrong", [lost, slow, refuse(Trouble("not done")), refuse(KeyError("oops"))])
def test_what_is_missed_or_fails_is_told(
    wrong: Run, bench: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, kept = bench(fine, wrong, fine)
    assert code == 1
    assert [outcome["good"] for outcome in kept["benches"]] == [True, False, True]
    assert "missed: bench1" in capsys.readouterr().out


def test_an_error_that_nobody_foresaw_is_kept_with_its_place(bench: Callable[..., Any]) -> None:
    _, kept = bench(refuse(KeyError("oops")))
    assert "KeyError: 'oops'" in kept["benches"][0]["failed"]
    assert "in refuse" in kept["benches"][0]["failed"] or "in run" in kept["benches"][0]["failed"]


def test_what_cannot_run_here_is_skipped_with_words(
    bench: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    code, kept = bench(refuse(Skipped("needs a whale")))
    assert code == 0
    assert kept["benches"][0]["skipped"] == "needs a whale"
    assert "skipped: needs a whale" in capsys.readouterr().out


def test_small_sizes_are_judged_by_what_must_not_happen_alone(bench: Callable[..., Any]) -> None:
    code, kept = bench(slow, quick=True)
    assert code == 0
    assert kept["benches"][0]["figures"][0]["good"] is None


def test_a_lost_message_is_told_with_small_sizes_too(bench: Callable[..., Any]) -> None:
    assert bench(lost, quick=True)[0] == 1
