"""House rules that can be checked: imports go one way, machines know no world, every module has words and a test."""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "rvq"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Whom each part may import, besides itself and the common ground. A part that is not here may not exist.
MAY_IMPORT: dict[str, set[str]] = {
    "wire": set(),
    "core": {"wire"},
    "transport": set(),
    "journal": {"wire"},
    "ledger": set(),
    "aio": {"core", "wire", "transport", "journal", "ledger"},
    "sim": {"core", "wire", "journal"},
    "spark": {"aio", "journal", "wire", ""},
    "web": {"aio", ""},
    "cli": {"aio", "transport", "sim", "journal", "spark", "web", ""},
    "": {"aio", "core", "ledger"},
}
"""The empty name is `rvq` itself: it gathers public names; only who uses rvq may import it."""

COMMON_GROUND = {"bus", "dead", "errors", "keyfile", "limits", "message", "names", "peers", "ranges", "timings"}
"""Single modules that everyone may import. They import only what stands below them."""

COMMON_MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "dead": {"errors"},
    "limits": set(),
    "names": {"errors", "limits"},
    "timings": {"errors"},
    "keyfile": {"errors"},
    "peers": {"errors", "limits"},
    "ranges": {"errors"},
    "bus": {"errors", "limits", "names", "peers", "ranges", "timings"},
    "message": {"errors", "ledger", "limits", "names", "wire"},  # of the ledger only a type, for its users
}

ABOVE: set[tuple[str, str]] = {("wire", "message")}
"""Common ground that stands above a part: message knows wire, so wire must not know message."""

DOORS: set[tuple[str, str]] = {
    ("transport", "rvq.core.machine"),
    ("message", "rvq.ledger.ledger"),
    ("keyfile", "rvq.wire.keys"),
    ("bus", "rvq.wire.keys"),
}
"""Single modules that a part may import of another: what drivers and machines agree on, which has no state; the
transaction that messages name, for type checkers only; and keys, which are values."""

WORLDLY = {"asyncio", "datetime", "multiprocessing", "os", "secrets", "select", "selectors", "signal", "socket"}
WORLDLY |= {"ssl", "subprocess", "sys", "threading", "time", "uuid", "uvloop"}
"""Modules that a machine must not know: sockets, clocks, tasks, the process around it, randomness of its own."""

SYS_ALLOWED = {"byteorder"}
"""What a machine may ask `sys`: facts that hold for the whole run."""

RANDOM_ALLOWED = {"Random"}
"""Randomness is handed in as an object; the functions of the module `random` are everybody's."""


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(name: str) -> str:
    """`core` for rvq.core.table, `bus` for rvq.bus, the empty name for rvq itself."""
    return name.split(".")[1] if "." in name else ""


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports_of(path: Path) -> Iterator[tuple[int, str, str | None]]:
    """(line, module, name) of every import, also of those inside functions and of relative ones."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            for alias in node.names:
                yield node.lineno, node.module or "", alias.name


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """(line, rvq module) of what is imported from rvq: `from rvq import limits` imports rvq.limits."""
    for line, module, name in imports_of(path):
        if module.split(".")[0] == "rvq":
            longer = f"{module}.{name}"
            yield line, longer if name and exists(longer) else module


def exists(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or path.is_dir()


def allowed(importer: str, imported: str) -> bool:
    part, other = part_of(importer), part_of(imported)
    if part in COMMON_GROUND:
        return other in COMMON_MAY_IMPORT[part] or (part, imported) in DOORS
    if (part, other) in ABOVE:
        return False
    return other == part or other in COMMON_GROUND or other in MAY_IMPORT[part] or (part, imported) in DOORS


each_module = pytest.mark.parametrize("path", MODULES, ids=module_name)
each_machine = pytest.mark.parametrize("path", sorted((PACKAGE / "core").rglob("*.py")), ids=module_name)


def test_there_is_something_to_check() -> None:
    assert {"rvq.bus", "rvq.core.table", "rvq.wire.codec", "rvq.sim.world"} <= {module_name(path) for path in MODULES}


@each_module
def test_every_module_has_its_place_in_the_house(path: Path) -> None:
    part = part_of(module_name(path))
    assert part in COMMON_GROUND or part in MAY_IMPORT, (
        f"{part} is not in STYLE.md's house: give it a place there first"
    )


@each_module
def test_imports_go_one_way(path: Path) -> None:
    name = module_name(path)
    wrong = [f"{path}:{line}: {other}" for line, other in imported_modules(path) if not allowed(name, other)]
    assert not wrong, f"{name} may not import these"


@each_machine
def test_machines_know_no_sockets_clocks_tasks_or_global_randomness(path: Path) -> None:
    wrong = [f"{path}:{line}: {module}" for line, module, name in imports_of(path) if is_worldly(module, name)]
    assert not wrong, "machines take what they need as arguments"


@pytest.mark.parametrize("path", sorted((PACKAGE / "journal").glob("*.py")), ids=module_name)
def test_a_journal_knows_files_only_through_its_storage(path: Path) -> None:
    world = WORLDLY - {"sys"} | {"fcntl", "io", "shutil", "mmap"}
    found = {module for _, module, _ in imports_of(path) if module.split(".")[0] in world}
    allowed_here = {"storage": {"os", "fcntl"}, "places": {"datetime"}, "writer": {"threading"}}
    assert found <= allowed_here.get(path.stem, set())


def is_worldly(module: str, name: str | None) -> bool:
    top = module.split(".")[0]
    if top == "random":
        return name not in RANDOM_ALLOWED
    return top in WORLDLY - {"sys"}


@each_machine
def test_machines_ask_the_interpreter_for_nothing_that_can_change(path: Path) -> None:
    tree = tree_of(path)
    asked = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and is_name(n.value, "sys")}
    assert asked <= SYS_ALLOWED
    assert not [name for _, module, name in imports_of(path) if module == "sys" and name is not None]


@each_machine
def test_machines_never_await_print_or_open_anything(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        assert not isinstance(node, (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)), node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in {"print", "open", "input", "exec", "eval", "__import__"}, node.lineno


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


@each_module
def test_every_module_says_what_it_owns(path: Path) -> None:
    words = ast.get_docstring(tree_of(path))
    assert words, f"{path} has no docstring"
    assert words.split("\n\n")[0].rstrip().endswith((".", "!", "?", ":")), "a docstring begins with a sentence"


@each_module
def test_every_module_has_a_test_of_its_name(path: Path) -> None:
    if path.stem not in {"__init__", "__main__"}:
        inside = path.relative_to(PACKAGE)
        test = ROOT / "tests" / inside.with_name(f"test_{inside.name}")
        assert test.exists(), f"{module_name(path)} has no test: write {test.relative_to(ROOT)}"
        assert any(isinstance(n, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) for n in tree_of(test).body)


@each_module
def test_every_folder_with_modules_is_a_package(path: Path) -> None:
    assert (path.parent / "__init__.py").exists(), f"{path.parent} has no __init__.py"


# --- the checks themselves can fail -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("importer", "imported", "may"),
    [
        ("rvq.core.table", "rvq.wire.frames", True),
        ("rvq.core.table", "rvq.core.stamps", True),
        ("rvq.core.table", "rvq.limits", True),
        ("rvq.wire.codec", "rvq.core.table", False),
        ("rvq.core.table", "rvq.aio.driver", False),
        ("rvq.core.table", "rvq.transport.udp", False),
        ("rvq.core.table", "rvq", False),
        ("rvq.sim.world", "rvq.core.table", True),
        ("rvq.sim.world", "rvq.transport.udp", False),
        ("rvq.sim.world", "rvq.aio.driver", False),
        ("rvq.sim.storage", "rvq.journal.storage", True),
        ("rvq.journal.reader", "rvq.wire.codec", True),
        ("rvq.journal.reader", "rvq.core.table", False),
        ("rvq.journal.journal", "rvq.aio.driver", False),
        ("rvq.aio.driver", "rvq.journal.journal", True),
        ("rvq.aio.driver", "rvq.transport.udp", True),
        ("rvq.aio.driver", "rvq.cli.send", False),
        ("rvq.transport.udp", "rvq.core.table", False),
        ("rvq.transport.udp", "rvq.core.machine", True),
        ("rvq.transport.udp", "rvq.bus", True),
        ("rvq.wire.codec", "rvq.message", False),
        ("rvq.core.stream", "rvq.message", True),
        ("rvq.bus", "rvq.timings", True),
        ("rvq.bus", "rvq.transport.udp", False),
        ("rvq.errors", "rvq.bus", False),
        ("rvq.ledger.sqlite", "rvq.names", True),
        ("rvq.ledger.sqlite", "rvq.core.table", False),
        ("rvq.ledger.sqlite", "rvq.aio.driver", False),
        ("rvq.aio.receiver", "rvq.ledger.ledger", True),
        ("rvq.core.table", "rvq.ledger.ledger", False),
        ("rvq", "rvq.ledger.ledger", True),
        ("rvq.cli.send", "rvq", True),
        ("rvq.cli.send", "rvq.core.table", False),
    ],
)
def test_the_house_has_these_doors(importer: str, imported: str, may: bool) -> None:
    assert allowed(importer, imported) == may


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import socket", True),
        ("from asyncio import sleep", True),
        ("def f():\n    import time", True),
        ("import random", True),
        ("from random import choice", True),
        ("from random import Random", False),
        ("import math, os.path", True),
        ("from collections import deque", False),
    ],
)
def test_a_machine_that_knows_the_world_is_found(tmp_path: Path, line: str, found: bool) -> None:
    module = tmp_path / "module.py"
    module.write_text(line)
    assert any(is_worldly(name, what) for _, name, what in imports_of(module)) == found


def test_what_counts_as_worldly_exists() -> None:
    assert WORLDLY - {"uvloop"} <= sys.stdlib_module_names
    assert all(hasattr(random, name) for name in RANDOM_ALLOWED)
    assert all(hasattr(sys, name) for name in SYS_ALLOWED)
