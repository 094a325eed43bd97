"""Counting instructions: how calls follow from what callgrind wrote, and that it counts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.figures import Skipped
from bench.group.fleet import Trouble
from bench.micro import instructions
from bench.micro.counted import Step, calls_of, steps


def step(what: str, calls: int = 10) -> Step:
    return Step(what, lambda: None, calls=calls)


def test_a_call_is_what_twice_as_many_cost_more() -> None:
    # Before the first mark, one run, twice as many calls: 7 for each run, 3 for each of 10 calls; 5 for each of 20.
    parts = [1000, 7 + 30, 7 + 60, 1000, 7 + 100, 7 + 200]
    assert instructions.per_call([step("a"), step("b", 20)], parts, 1.0) == [3.0, 5.0]


def test_fewer_calls_are_counted_as_fewer() -> None:
    assert calls_of(step("a"), 0.2) == 2
    assert calls_of(step("a"), 0.001) == 1
    assert instructions.per_call([step("a")], [1000, 7 + 6, 7 + 12], 0.2) == [3.0]


def test_a_part_that_is_missing_is_noticed() -> None:
    with pytest.raises(Trouble, match="wrote 2 parts, not 3 of each of 1 steps"):
        instructions.per_call([step("a")], [1000, 37], 1.0)


def test_a_file_without_a_total_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "out.1").write_text("events: Ir\ntotals: 42\n")
    (tmp_path / "out.2").write_text("events: Ir\n")
    assert instructions._total(tmp_path / "out.1") == 42
    with pytest.raises(Trouble, match=r"no total in out\.2"):
        instructions._total(tmp_path / "out.2")


def test_parts_are_in_the_order_in_which_they_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        (out,) = (word.partition("=")[2] for word in command if word.startswith("--callgrind-out-file="))
        for number in range(1, 13):
            Path(f"{out}.{number}").write_text(f"totals: {number}\n")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", write)
    assert instructions.count_parts([step("a")], 1.0) == list(range(1, 13))


def test_every_step_has_a_name_of_its_own_and_can_be_taken() -> None:
    names = [each.what for each in steps()]
    assert len(set(names)) == len(names)
    assert {name.partition(":")[0] for name in names[1:]} == {"codec", "stride", "lanes", "acks", "single"}
    for each in steps():
        each.call()


def test_without_valgrind_it_is_skipped_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions.shutil, "which", lambda name: None)
    with pytest.raises(Skipped, match="apt-get install valgrind"):
        next(instructions.run(True))


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs valgrind (apt-get install valgrind)")
def test_callgrind_counts_a_step_that_does_more_as_more(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [each for each in steps() if each.what in ("nothing, for comparison", "lanes: shard of a key")]
    monkeypatch.setattr(instructions, "steps", lambda: few)
    nothing, shard = instructions.run(True)
    assert 0 < nothing.value * 2 < shard.value
    assert nothing.unit == shard.unit == "instructions"
