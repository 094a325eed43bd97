"""`rvq key`: making, showing and changing key files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import rvq.cli
from rvq.keyfile import read_keys


def run(*arguments: object) -> int:
    try:
        return rvq.cli.main(["key", *map(str, arguments)])
    except SystemExit as exit:
        assert isinstance(exit.code, int)
        return exit.code


@pytest.fixture
def path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """With one key."""
    assert run("new", tmp_path / "bus.key") == 0
    capsys.readouterr()
    return tmp_path / "bus.key"


def listed(path: Path, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    capsys.readouterr()
    assert run("ls", path) == 0
    return [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]


def test_a_new_file_has_one_key_for_its_owner_alone(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert listed(path, capsys) == [[read_keys(path).in_use.name, "in use"]]


def test_a_new_file_never_takes_the_place_of_another(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert run("new", path) == 1
    assert "is there already" in capsys.readouterr().err and path.read_bytes() == before


def test_add_use_and_drop_rekey_a_file(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = read_keys(path).in_use.name
    assert run("add", path) == 0
    (first, new) = (row for row in listed(path, capsys))
    assert first == [old, "in use"] and new[1] == "live"
    assert run("use", path) == 0
    assert listed(path, capsys) == [[old, "live"], [new[0], "in use"]]
    assert run("drop", path) == 0
    assert listed(path, capsys) == [[new[0], "in use"]]


def test_keys_are_named_by_how_their_ids_begin(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("add", path), run("add", path)
    ids = [id for id, _ in listed(path, capsys)]
    assert run("use", path, ids[1][:10]) == 0
    assert run("drop", path, ids[0].upper()) == 0
    assert listed(path, capsys) == [[ids[1], "in use"], [ids[2], "live"]]
    assert run("drop", path, "zz") == 2 and "0 keys begin with 'zz'" in capsys.readouterr().err


def test_the_key_in_use_is_not_dropped(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (used,) = (id for id, _ in listed(path, capsys))
    assert run("drop", path, used) == 1
    assert "use another one first" in capsys.readouterr().err and len(listed(path, capsys)) == 1


def test_the_keys_of_another_file_are_added(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    next_one = tmp_path / "next.key"
    run("new", next_one)
    assert run("add", path, "--from", next_one) == 0
    assert [id for id, _ in listed(path, capsys)][1] == read_keys(next_one).in_use.name


def test_no_secret_is_ever_printed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("add", "use", "drop", "ls"):
        run(action, path)
    shown = capsys.readouterr()
    secrets = [line.split()[-1] for line in path.read_text().splitlines()[2:]]
    assert secrets and not any(secret in shown.out + shown.err for secret in secrets)


def test_the_file_may_come_from_the_option_or_the_environment(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("ls", "--key-file", path) == 0
    assert run("ls") == 2 and "say which key file" in capsys.readouterr().err
    monkeypatch.setenv("RVQ_KEY_FILE", os.fspath(path))
    assert run("ls") == 0


def test_what_others_can_read_is_not_used(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path.chmod(0o644)
    assert run("ls", path) == 1
    assert f"chmod 600 {path}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["new", "f", "ab"], "ID means nothing to new"),
        (["ls", "f", "ab"], "ID means nothing to ls"),
        (["use", "f", "--from", "g"], "--from means nothing to use"),
        (["mend", "f"], "invalid choice"),
        ([], "required"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err
