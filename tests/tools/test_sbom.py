"""The bill of materials: all that it takes, as it is installed, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import pytest

from tools.sbom import document, extras_of, main, walk

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def names(extras: list[str]) -> set[str]:
    bill, _ = document("rvq", extras, WHEN)
    return {part["name"] for part in bill["components"]}


def test_it_has_what_rvq_needs_and_what_that_needs() -> None:
    assert names([]) == {"msgpack", "sortedcontainers", "uvloop"}
    assert {"cryptography", "cffi"} <= names(["seal"]) - names([])
    assert "aiohttp" not in names(["seal"])


def test_an_extra_of_a_dependency_counts() -> None:
    assert "psycopg-binary" in names(["postgres"])


def test_it_says_who_needs_whom_and_names_only_what_is_in_it() -> None:
    bill, missing = document("rvq", ["seal"], WHEN)
    assert missing == []
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    msgpack, sealing = f"pkg:pypi/msgpack@{version('msgpack')}", f"pkg:pypi/cryptography@{version('cryptography')}"
    assert {msgpack, sealing} <= set(needs[f"pkg:pypi/rvq@{version('rvq')}"])
    assert needs[msgpack] == []
    everything = {part["bom-ref"] for part in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
    assert needs.keys() == everything
    assert {ref for refs in needs.values() for ref in refs} <= everything


def test_the_same_parts_make_the_same_bill() -> None:
    first, again = document("rvq", ["seal"], WHEN), document("rvq", ["seal"], WHEN)
    assert first == again
    assert first[0]["serialNumber"] != document("rvq", [], WHEN)[0]["serialNumber"]
    assert first[0]["metadata"]["timestamp"] == "2026-01-02T03:04:05Z"


def test_every_part_has_a_version_and_a_licence() -> None:
    bill, _ = document("rvq", [], WHEN)
    for part in bill["components"]:
        assert part["version"] == version(part["name"])
        (licence,) = part["licenses"]
        assert licence.get("expression") or licence["license"]["name"] != "unknown"


def test_what_is_not_installed_is_named() -> None:
    assert walk("rvq-of-which-nobody-has-heard", [])[2] == ["rvq-of-which-nobody-has-heard"]


def test_the_command_writes_json_and_refuses_an_extra_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, str(Path(__file__).parents[2] / "tools" / "sbom.py"), "--extras", "seal"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout)["bomFormat"] == "CycloneDX"
    with pytest.raises(SystemExit):
        main(["--extras", "sael"])
    assert "no extra 'sael'" in capsys.readouterr().err


def test_the_extras_of_users_are_those_of_the_makefile() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert f"SBOM_EXTRAS ?= {','.join(extras_of('rvq'))}\n" in makefile
