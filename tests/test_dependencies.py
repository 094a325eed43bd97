"""What pyproject.toml, the README and docs/dependencies.md say of dependencies is the same, and true."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.sbom import FOR_WORK_ON_RVQ, licence_of, walk

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOR_USERS = {name: lines for name, lines in EXTRAS.items() if name not in FOR_WORK_ON_RVQ}

BY_THE_CALENDAR = {"cryptography", "pyarrow"}
"""Their major versions break little and come often: an upper end would keep fixes of holes away."""

MAY_BE_USED = re.compile(
    r"Apache|MIT|BSD|0BSD|ISC|PSF|Python Software Foundation|Zlib|CC0|LGPL-3\.0-only|Mozilla Public License|MPL-2\.0"
)
"""Licences of libraries that Apache-2.0 code may use unchanged."""


def wanted(lines: list[str]) -> list[Requirement]:
    return [Requirement(line) for line in lines]


OF_USERS = [
    (extra, requirement)
    for extra, lines in {"": PROJECT["dependencies"], **FOR_USERS}.items()
    for requirement in wanted(lines)
]


def ends(requirement: Requirement) -> set[str]:
    return {one.operator for one in requirement.specifier}


@pytest.mark.parametrize("requirement", [one for lines in EXTRAS.values() for one in wanted(lines)], ids=str)
def test_every_dependency_says_how_old_it_may_be(requirement: Requirement) -> None:
    assert ">=" in ends(requirement)


@pytest.mark.parametrize(("extra", "requirement"), OF_USERS, ids=str)
def test_what_users_install_has_an_upper_end_or_a_reason_for_none(extra: str, requirement: Requirement) -> None:
    assert ends(requirement) == ({">="} if requirement.name in BY_THE_CALENDAR else {">=", "<"})


@pytest.mark.parametrize(("extra", "requirement"), OF_USERS, ids=str)
def test_what_is_installed_here_is_in_its_range(extra: str, requirement: Requirement) -> None:
    try:
        version = distribution(requirement.name).version
    except PackageNotFoundError:
        pytest.skip(f"{requirement.name} is not installed here (pip install '.[{extra}]')")
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize(("extra", "requirement"), OF_USERS, ids=str)
def test_the_page_has_a_row_for_each(extra: str, requirement: Requirement) -> None:
    """Package, range and extra, as they stand in pyproject.toml."""
    shown = ",".join(sorted(map(str, requirement.specifier), key=lambda one: one[0], reverse=True))
    row = f"| {requirement.name} | `{shown}` | {f'`{extra}` ' if extra else ''}| "
    assert row in (ROOT / "docs" / "dependencies.md").read_text()


def test_the_readme_has_every_extra_with_its_packages() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| ([\w, -]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {extra: set(names.split(", ")) for extra, names in rows if extra in FOR_USERS} == {
        extra: {requirement.name for requirement in wanted(lines)} for extra, lines in FOR_USERS.items()
    }


def test_dev_has_what_the_tests_of_extras_need() -> None:
    """All but Spark, which is large: `make test EXTRAS=dev,spark`."""
    dev = {canonicalize_name(one.name) for one in wanted(EXTRAS["dev"])}
    extras = {canonicalize_name(one.name) for extra, one in OF_USERS if extra not in ("", "spark")}
    assert extras <= dev


def test_all_that_is_used_may_be_used() -> None:
    """Also what dependencies need in turn, as far as it is installed."""
    found, _, _ = walk("rvq", FOR_USERS)
    assert {name: licence_of(one) for name, one in found.items() if not MAY_BE_USED.search(licence_of(one))} == {}
