"""The bench of Spark writes the rows that it says, and counts the processor time of all that take part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.figures import Skipped
from bench.spark import rows
from rvq.journal import JournalReader


def test_the_journal_has_the_rows_that_were_asked_for(tmp_path: Path) -> None:
    reader = JournalReader(rows.write(tmp_path, 1000))
    (end,) = reader.tail(rows.LABEL).values()
    assert end.row == 1000


def test_processor_time_is_that_of_children_as_well() -> None:
    before = rows.processor_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert rows.processor_seconds() - before > 0.05


def test_without_java_it_is_skipped_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(Skipped, match="needs"):
        list(rows.run(True))
