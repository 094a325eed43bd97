"""Growth: what is measured to which size, what is judged, kept and drawn. Measurements are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import figures
from bench.figures import Figure
from bench.peers import growth
from bench.peers.growth import GIGABIT_BYTES, Growth
from bench.peers.one import Measured
from bench.peers.systems import Job


def one(cpu: float = 2.0, wrong: int = 0) -> Measured:
    return Measured(1.0, 1000.0, cpu, {}, wrong, control_per_s=50.0)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results go."""
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    return tmp_path


def forge(monkeypatch: pytest.MonkeyPatch, heard: Any = lambda members: 900.0 * members) -> list[Job]:
    jobs: list[Job] = []

    def measure(job: Job) -> Measured:
        jobs.append(job)
        return one()

    monkeypatch.setattr(growth, "measure", measure)
    monkeypatch.setattr(growth, "control_bytes_per_s", heard)
    monkeypatch.setattr(growth.plot, "draw_growth", lambda grown, path: [])
    return jobs


def judged(figures: Any) -> dict[str, Figure]:
    return {f"{figure.what} {figure.unit}": figure for figure in figures if figure.good is not None}


def test_it_grows_to_sixteen_receivers_eight_senders_and_a_thousand_members(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    jobs = forge(monkeypatch, lambda members: asked.append(members) or 900.0 * members)
    list(growth.run(False))
    assert {job.receivers for job in jobs if job.senders == 1} == {1, 2, 4, 8, 16}
    assert {job.senders for job in jobs if job.receivers == growth.RECEIVERS_OF_SENDERS} == {1, 2, 4, 8}
    assert len({job.total for job in jobs}) == 1
    assert max(asked) == 1000


def test_everything_is_kept_by_name_and_with_the_machine(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch)
    list(growth.run(True))
    (path,) = kept.glob("*-growth.json")
    content = json.loads(path.read_text())
    assert content["machine"]["cores"] > 0
    assert list(content["by_receivers"]) == ["1", "2", "4", "8", "16"]
    assert list(content["by_senders"]) == ["1", "2", "4", "8"]
    eight = content["by_receivers"]["8"]
    assert (eight["rate"], eight["cpu_s_per_million"], eight["control_per_s"], eight["wrong"]) == (1000, 2, 50, 0)
    assert len(eight["runs"]) == 1
    assert content["control_bytes_per_s_heard"] == {"5": 4500.0, "10": 9000.0}


def test_linear_growth_below_a_hundredth_of_a_gigabit_is_good(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch)
    figures = judged(growth.run(False))
    assert len([name for name in figures if "as fast as linearly" in name]) == 2
    assert figures["1,000 members: control heard by each % of a gigabit"].value == pytest.approx(0.72)
    assert all(figures[name].good for name in figures if "members" in name)


def test_control_that_grows_with_the_square_is_noticed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch, lambda members: 0.9 * members**2)
    wrong = [name for name, figure in judged(growth.run(False)).items() if not figure.good and "linearly" in name]
    assert len(wrong) == 2


def test_control_that_grows_faster_at_the_end_alone_is_noticed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Slowly first, so that from the smallest to the largest it seems linear.
    forge(monkeypatch, lambda members: 9000.0 if members < 1000 else 900_000.0)
    good = {name: figure.good for name, figure in judged(growth.run(False)).items() if "linearly" in name}
    assert good["from 10 to 1,000 members: control grows x as fast as linearly"]
    assert not good["from 500 to 1,000 members: control grows x as fast as linearly"]


def test_more_than_a_hundredth_of_a_gigabit_is_noticed(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forge(monkeypatch, lambda members: GIGABIT_BYTES * 0.011 * members / 1000)
    assert judged(growth.run(False))["1,000 members: control heard by each % of a gigabit"].good is False


@pytest.mark.parametrize("where", ["by_receivers", "by_senders"])
def test_one_wrong_message_is_noticed(where: str) -> None:
    grown = Growth({2: [one()], 8: [one()]}, {1: [one()]})
    assert judged(growth._real(grown))["lost, repeated or invented "].good
    runs = next(iter(getattr(grown, where).values()))
    runs[0] = one(wrong=1)
    assert judged(growth._real(grown))["lost, repeated or invented "].good is False


def test_processor_time_that_grows_with_the_receivers_is_noticed() -> None:
    figures = judged(growth._real(Growth({2: [one(cpu=2.0)], 8: [one(cpu=3.0)]}, {})))
    assert figures["processor time per message, 8 receivers x that of 2"].value == 1.5
    assert figures["processor time per message, 8 receivers x that of 2"].good is False


def test_without_matplotlib_the_figures_are_kept_all_the_same(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(grown: Growth, path: Path) -> None:
        raise growth.plot.NoPlot("matplotlib is not installed")

    forge(monkeypatch)
    monkeypatch.setattr(growth.plot, "draw_growth", refuse)
    list(growth.run(True))
    assert len(list(kept.iterdir())) == 1
    assert "no plot: matplotlib is not installed" in capsys.readouterr().out
