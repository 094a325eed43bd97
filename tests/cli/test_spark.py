"""`rvq spark`: options that fit, exit codes, and words; the jobs themselves are tested with Spark."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rvq.cli
from tests.spark.conftest import WHY_NOT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compact", "J"], "say where to: rvq spark compact DIR OUT"),
        (["audit", "J", "OUT"], "audit has no OUT"),
        (["audit", "J", "--ranges", "4"], "--ranges means nothing to audit: leave it out"),
        (["replay", "J", "--html", "F"], "--html means nothing to replay"),
        (["stats", "J", "--follow", "--html", "F"], "--follow has no end"),
    ],
)
def test_what_does_not_fit_is_wrong_use(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rvq.cli.main(["spark", *arguments]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["mend", "J"], ["audit"], ["replay", "J", "--sender", "xyz"], ["audit", "J", "--since", "noon"]]
)
def test_what_is_no_job_or_no_value_is_wrong_use(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        rvq.cli.main(["spark", *arguments])
    assert left.value.code == 2


def test_without_pyspark_that_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert rvq.cli.main(["spark", "audit", "J"]) == 1
    assert "pyspark, pyarrow, numpy is not installed: pip install rvq[spark]" in capsys.readouterr().err


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rvq.cli", "spark", *arguments],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=140,
    )


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.timeout(300)
def test_an_audit_ends_with_1_if_something_was_lost(tmp_path: Path) -> None:
    from tests.spark.stories import A, Story, quiet

    journal = quiet().write(tmp_path / "good")
    good = command("audit", str(journal), "--master", "local[1]")
    assert good.returncode == 0, good.stderr
    assert "recorded 100, done 100, lost 0, done twice 0" in good.stderr
    page = tmp_path / "report.html"
    story = Story().stamp(1, [A]).send(1, 10).handle(A, 0, 1, 9).goodbye()
    bad = command("audit", str(story.write(tmp_path / "bad")), "--json", "--html", str(page), "--master", "local[1]")
    assert bad.returncode == 1, bad.stderr
    (finding,) = map(json.loads, bad.stdout.splitlines())
    assert (finding["verdict"], finding["first"], finding["last"]) == ("lost", 10, 10)
    assert "not everything was done once" in page.read_text()
