"""The verdict on known holes: what nobody looked up is not clean."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tools import audit

FINE = {"name": "msgpack", "version": "1.2", "vulns": []}
HOLE = {"name": "aiohttp", "version": "3.0", "vulns": [{"id": "X-1", "fix_versions": ["3.1"]}]}
SKIPPED = {"name": "uvloop", "skip_reason": "Dependency not found on PyPI and could not be audited"}
OURS = {"name": "rvq", "skip_reason": "distribution marked as editable"}


@pytest.mark.parametrize(
    ("packages", "code"),
    [
        ([FINE, OURS], audit.CLEAN),
        ([FINE, HOLE], audit.HOLES),
        ([FINE, HOLE, SKIPPED], audit.HOLES),
        ([FINE, SKIPPED], audit.UNKNOWN),
        ([SKIPPED], audit.UNKNOWN),
        ([OURS], audit.UNKNOWN),
        ([], audit.UNKNOWN),
        ([{"name": "uvloop", "version": "1"}], audit.UNKNOWN),
    ],
)
def test_only_what_was_looked_up_and_has_no_hole_is_clean(packages: list[dict[str, Any]], code: int) -> None:
    assert audit.judge({"dependencies": packages}).code == code


def answers(monkeypatch: pytest.MonkeyPatch, **by_service: str) -> None:
    """pip-audit says this, by service: JSON on standard output, or anything else on standard error."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        said = by_service[command[-1]]
        is_json = said.startswith("{")
        return subprocess.CompletedProcess(command, 0, said if is_json else "", "" if is_json else said)

    monkeypatch.setattr(audit.subprocess, "run", run)


def report(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages})


def test_where_nobody_can_be_asked_it_says_so_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, pypi=report(SKIPPED), osv="a long trace\nConnectionError: no such host")
    assert audit.main() == audit.UNKNOWN
    said = capsys.readouterr()
    assert "pypi: 0 of 1 packages looked up" in said.out
    assert "osv: cannot be asked: ConnectionError: no such host" in said.err
    assert "NOT AUDITED" in said.err


def test_the_second_service_is_asked_if_the_first_does_not_know_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, pypi=report(SKIPPED), osv=report(FINE, OURS))
    assert audit.main() == audit.CLEAN
    assert "NOT AUDITED" not in capsys.readouterr().err


def test_a_hole_is_named_with_the_version_that_has_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, pypi=report(FINE, HOLE), osv="not asked")
    assert audit.main() == audit.HOLES
    assert "aiohttp 3.0: X-1, fixed in 3.1" in capsys.readouterr().out


def test_without_the_tool_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, pypi="python: No module named pip_audit", osv="python: No module named pip_audit")
    assert audit.main() == audit.UNKNOWN
    assert "pip install -e '.[audit]'" in capsys.readouterr().err
