"""Key files: what is written is read, what others could read is refused, and nothing is half there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvq.errors import BusError
from rvq.keyfile import FILE_BYTES_MAX, Key, Keys, create_keys, new_key, read_keys, replace_keys


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bus.key"


def test_what_is_written_is_read(path: Path) -> None:
    one, two, three = new_key(), new_key(), new_key()
    create_keys(path, Keys([one, two, three], two))
    assert read_keys(path) == Keys([one, two, three], two)
    assert list(read_keys(path).live.values()) == [one, two, three], "in the order in which they came"


def test_it_is_for_its_owner_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        create_keys(path, Keys([new_key()]))
        replace_keys(path, Keys([new_key()]))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666, 0o610, 0o601])
def test_one_that_is_open_to_others_is_refused_with_what_to_do(path: Path, mode: int) -> None:
    create_keys(path, Keys([new_key()]))
    path.chmod(mode)
    with pytest.raises(BusError, match=rf"mode {mode:04o}.*chmod 600"):
        read_keys(path)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_one_that_only_its_owner_can_read_is_fine(path: Path, mode: int) -> None:
    create_keys(path, Keys([new_key()]))
    path.chmod(mode)
    read_keys(path)


def test_a_file_is_never_written_over(path: Path) -> None:
    keys = Keys([new_key()])
    create_keys(path, keys)
    with pytest.raises(BusError, match="is there already"):
        create_keys(path, Keys([new_key()]))
    assert read_keys(path) == keys


def test_replacing_leaves_nothing_beside_it_and_keeps_a_link(path: Path, tmp_path: Path) -> None:
    create_keys(path, Keys([new_key()]))
    link = tmp_path / "link"
    link.symlink_to(path)
    keys = Keys([new_key()])
    replace_keys(link, keys)
    assert link.is_symlink() and read_keys(path) == keys
    assert sorted(tmp_path.iterdir()) == [path, link]


def test_where_there_is_none_it_says_how_to_make_one(path: Path) -> None:
    with pytest.raises(BusError, match="rvq key new"):
        read_keys(path)
    with pytest.raises(BusError, match="cannot be written"):
        create_keys(path / "deeper", Keys([new_key()]))


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("pipe", ""):
        with pytest.raises(BusError):
            read_keys(tmp_path / name)


def lines_of(keys: Keys, path: Path) -> list[str]:
    create_keys(path, keys)
    return path.read_text().splitlines()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda lines: [],
        lambda lines: lines[:1],
        lambda lines: lines[:2],
        lambda lines: [line.replace("rvq-keys 1", "rvq-keys 2") for line in lines],
        lambda lines: [line.replace("use ", "live") for line in lines],
        lambda lines: [line.replace("live", "use ") for line in lines],
        lambda lines: [line.replace("use ", "used") for line in lines],
        lambda lines: [*lines, "live"],
        lambda lines: [*lines, lines[-1][:-4]],
        lambda lines: [*lines, lines[-1].replace(lines[-1].split()[1], "0" * 16)],
        lambda lines: [*lines, "# é"],
        lambda lines: [*lines, "#" * FILE_BYTES_MAX],
    ],
)
def test_what_is_damaged_is_refused_and_no_secret_is_shown(path: Path, spoil: object) -> None:
    lines = lines_of(Keys([new_key(), new_key()]), path)
    path.write_text("\n".join(spoil(lines)))  # type: ignore[operator]
    path.chmod(0o600)
    with pytest.raises(BusError) as error:
        read_keys(path)
    assert not any(line.split()[-1] in str(error.value) for line in lines[2:])


@given(st.binary(max_size=300))
def test_any_bytes_are_keys_or_an_error_of_ours(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("keys") / "bus.key"
    path.touch(0o600)
    path.write_bytes(data)
    with pytest.raises(BusError):
        read_keys(path)


def test_remarks_and_empty_lines_are_passed_over(path: Path) -> None:
    key = new_key()
    lines = lines_of(Keys([key]), path)
    path.write_text("\n\n# a remark\n" + "\n  \n".join(line + "  # ours" for line in lines[1:]))
    assert read_keys(path) == Keys([key])


def test_new_keys_differ() -> None:
    assert len({new_key() for _ in range(20)}) == 20 and isinstance(new_key(), Key)
