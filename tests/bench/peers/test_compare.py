"""The comparison: which cases run, what is judged and kept, and what becomes of a peer that is missing or fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import __main__, figures
from bench.figures import Figure
from bench.group.fleet import Trouble
from bench.peers import compare
from bench.peers.commands import Lines
from bench.peers.compare import SPREAD, Comparison
from bench.peers.one import Measured
from bench.peers.systems import SYSTEMS, Job, System, system

RATES = {"rvq batches": 3000.0, "rvq each": 1500.0, "bare multicast": 6000.0}
"""Of the peers: 1,000."""


class NoServer:
    """In place of a server."""

    port, pid = 1, 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> NoServer:
        return self

    def __exit__(self, *reason: object) -> None:
        pass


def made_up(job: Job) -> Measured:
    rate = RATES.get(job.system, 1000.0) / (2 if job.spread else 1)
    return Measured(1.0, rate, 1e6 / rate, {}, 0, 30.0, 60.0)


@pytest.fixture
def forge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Job]]:
    """Nothing is measured: `measure` says what comes out. The jobs, as they come; results go to the test's folder."""
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    monkeypatch.setattr(compare, "Server", NoServer)
    monkeypatch.setattr(compare, "measure_lines", lambda count: Lines(1.0, 0, 30.0))
    monkeypatch.setattr(compare, "measure_idle", lambda seconds: {"sender": 0.1})
    monkeypatch.setattr(compare.plot, "draw_peers", lambda comparison, path: [])

    def call(measure: Callable[[Job], Measured] = made_up, missing: bool = False) -> list[Job]:
        jobs: list[Job] = []

        def noted(job: Job) -> Measured:
            jobs.append(job)
            return measure(job)

        monkeypatch.setattr(compare, "measure", noted)
        monkeypatch.setattr(system, "_has", lambda module: not missing)
        monkeypatch.setattr(system, "find_server", lambda name: None if missing else name)
        return jobs

    return call


def by_name(found: Iterator[Figure]) -> dict[str, Figure]:
    return {f"{figure.what} {figure.unit}": figure for figure in found}


def kept(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*-peers.json")
    content: dict[str, Any] = json.loads(path.read_text())
    return content


def test_every_system_runs_in_the_asked_shapes_and_sizes(forge: Callable[..., list[Job]]) -> None:
    jobs = forge()
    Comparison(False).measure()
    ran = {(job.system, job.senders, job.receivers, job.size) for job in jobs}
    shapes = ((1, 3), (1, 1), (3, 3), (1, 8))
    assert ran >= {(name, *shape, size) for name in SYSTEMS for shape in shapes for size in (100, 1024)}
    main = [job for job in jobs if (job.senders, job.receivers) == (1, 3) and not job.spread and not job.rate]
    assert len(main) == compare.ROUNDS * len(SYSTEMS) * 2


def test_mixed_lengths_run_beside_the_fastest_peers_in_every_round(forge: Callable[..., list[Job]]) -> None:
    jobs = forge()
    Comparison(False).measure()
    mixed = [job for job in jobs if job.spread]
    assert {job.spread for job in mixed} == {SPREAD}
    assert sorted(job.system for job in mixed) == sorted(compare.IN_MIXED * compare.ROUNDS)


def test_mixed_lengths_are_compared_with_mixed_lengths(forge: Callable[..., list[Job]]) -> None:
    forge()
    found = by_name(compare.run(True))
    assert found["rvq batches, mixed lengths: rate x Redis lists"].value == 3.0
    assert found["rvq batches, mixed lengths: rate x pyzmq"].good is False
    assert found["rvq batches, mixed lengths: rate x bare multicast"].good


@pytest.mark.parametrize("of", [{"spread": SPREAD}, {"rate": compare.LATENCY_RATE}, {"receivers": 8}], ids=str)
def test_one_wrong_message_is_noticed_wherever_it_is(
    of: dict[str, float], forge: Callable[..., list[Job]], capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(job: Job) -> Measured:
        wrong = job.system == "rvq batches" or bool(job.rate)
        wrong = wrong and all(getattr(job, name) == value for name, value in of.items())
        return Measured(1.0, 1000.0, 2.0, {}, int(wrong), 30.0, 60.0)

    forge(measure)
    assert by_name(compare.run(True))["peers: lost, repeated or invented "].good is False
    assert __main__.main(["--only", "peers", "--quick"]) == 1
    assert "missed: peers" in capsys.readouterr().out


def test_what_is_kept_has_the_machine_all_runs_and_the_ratios(forge: Callable[..., list[Job]], tmp_path: Path) -> None:
    jobs = forge()
    list(compare.run(True))
    content = kept(tmp_path)
    assert content["machine"]["processor"]
    assert content["skipped"] == {}
    assert sum(len(case["runs"]) for case in content["rates"]) == len([job for job in jobs if not job.rate])
    assert content["latency"].keys() == set(compare.LATENCY)
    ratios = {(each["rvq"], each["peer"], each["bytes"]): each for each in content["ratios"]}
    assert len(ratios) == 2 * 2 * (len(SYSTEMS) - 1)
    assert ratios["rvq batches", "nats-py", 1024]["rate"] == 3.0
    assert ratios["rvq batches", "nats-py", 1024]["cpu"] == pytest.approx(1 / 3)
    assert ratios["rvq each", "bare multicast", 100]["rate"] == 0.25


def test_peers_that_are_missing_are_skipped_with_words(
    forge: Callable[..., list[Job]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = forge(missing=True)
    assert __main__.main(["--only", "peers", "--quick"]) == 0
    told = capsys.readouterr().out
    assert {job.system for job in jobs} == {"rvq batches", "rvq each", "bare multicast"}
    assert "skipped: pyzmq: Python's zmq is not installed (pip install '.[bench]')" in told
    assert kept(tmp_path)["skipped"].keys() == {"Redis lists", "pyzmq", "nats-py", "Redis Streams", "pyzmq uvloop"}


def test_a_server_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "_has", lambda module: True)
    monkeypatch.setattr(system, "find_server", lambda name: None)
    assert SYSTEMS["nats-py"].missing == "nats-server is not installed (apt install nats-server)"
    assert SYSTEMS["pyzmq"].missing == ""


@pytest.mark.parametrize("shape", [(1, 3), (3, 3)], ids=str)
def test_a_peer_that_fails_is_left_out_with_words(
    shape: tuple[int, int], forge: Callable[..., list[Job]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def measure(job: Job) -> Measured:
        if job.system == "pyzmq uvloop" and (job.senders, job.receivers) == shape:
            raise Trouble("a process ended early")
        return made_up(job)

    jobs = forge(measure)
    found = by_name(compare.run(False))
    assert not [name for name in found if "pyzmq uvloop" in name]
    assert found["rvq batches: rate x pyzmq"].value == 3.0
    assert kept(tmp_path)["skipped"] == {"pyzmq uvloop": "failed: a process ended early"}
    assert "skipped: pyzmq uvloop: failed: a process ended early" in capsys.readouterr().out
    assert [job.system for job in jobs if (job.senders, job.receivers) == shape].count("pyzmq uvloop") == 1


def test_rvq_that_fails_fails_the_bench(forge: Callable[..., list[Job]]) -> None:
    def measure(job: Job) -> Measured:
        raise Trouble(f"{job.system}: not done")

    forge(lambda job: measure(job) if job.system == "rvq each" else made_up(job))
    assert __main__.main(["--only", "peers", "--quick"]) == 1


def test_all_systems_of_the_comparison_have_different_names() -> None:
    assert all(isinstance(each, System) and name == each.name for name, each in SYSTEMS.items())
