"""docs/spark.md names every option, column, verdict and job that there is, and no others of the first two."""

from __future__ import annotations

import re
from pathlib import Path

from rvq.cli.spark import JOBS
from rvq.spark.audit import DONE, TWICE, UNRECORDED, UNTOLD
from rvq.spark.columns import MESSAGE_COLUMNS
from rvq.spark.options import READ_OPTIONS
from rvq.spark.outgoing import COLUMNS
from rvq.spark.sink import WRITE_OPTIONS

PAGE = (Path(__file__).parents[2] / "docs/spark.md").read_text()


def first_cells(part: str, head: str) -> set[str]:
    """The names in the first column of the first table with this head behind a heading."""
    table = PAGE.partition(f"## {part}")[2].partition(f"| {head} |")[2].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_every_option_and_column_is_there() -> None:
    assert first_cells("Reading", "option") == set(READ_OPTIONS)
    assert first_cells("Reading", "column") == set(MESSAGE_COLUMNS)
    assert first_cells("Writing", "option") | {"runId", "checkpointLocation"} == set(WRITE_OPTIONS)
    assert first_cells("Writing", "column") == set(COLUMNS)


def test_every_job_and_verdict_is_there() -> None:
    jobs = PAGE.partition("## Jobs")[2]
    assert all(f"`{job} DIR" in jobs for job in JOBS)
    assert all(word in jobs for word in (DONE, TWICE, UNRECORDED, UNTOLD, "lost", "open", "unknown"))
