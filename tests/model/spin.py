"""Runs spin on the model. Owns building a verifier, its verdict, and the larger searches of `make model`.

Knows no rules: which searches must pass and which must fail is in test_model.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

MODEL = Path(__file__).with_name("ownership.pml")
DEPTH = 100_000
"""Steps of one run that are followed at most: hundreds of times what is reached, and if not, it is said."""
SECONDS = 3000
TOOLS = ("spin", "gcc")


class Broken(Enum):
    """What the model's assertions are about."""

    TWO_OWNERS = "two may start it at one time"
    REPEATED = "an heir starts what the sender knew as done"
    LOST = "what nobody handled counts as done"
    STUCK = "it is never done"


_ASSERTIONS = {
    r"\(\(i==": Broken.TWO_OWNERS,
    r" ?!\(\(\(told": Broken.REPEATED,
    r".*\|\|handled": Broken.LOST,
    r"acknowledged ": Broken.STUCK,
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one search found."""

    broken: Broken | None
    complete: bool
    """Every state was looked at, or an error was found."""
    states: int
    unreached: tuple[str, ...]
    """Lines of the model that no run came to."""


@dataclass(frozen=True, slots=True)
class Search:
    """A world that takes minutes and some GiB to look through, and what must break in it."""

    what: str
    flags: tuple[str, ...]
    broken: Broken | None = None


LARGER = (
    Search("two receivers, four stamps", ("RECEIVERS=2", "STAMPS=4")),
    Search("two receivers, two stamps, a lease of three ticks", ("RECEIVERS=2", "STAMPS=2", "LEASE=3")),
    Search("then calm: two receivers, three stamps", ("RECEIVERS=2", "STAMPS=3", "CALMS")),
    Search("then calm: three receivers, one stamp", ("RECEIVERS=3", "STAMPS=1", "CALMS")),
    Search(
        "three receivers, only the last wait counts",
        ("RECEIVERS=3", "STAMPS=3", "LAST_WAIT_ONLY", "ANSWERS_AT_ONCE"),
        Broken.TWO_OWNERS,
    ),
    Search("three receivers, three stamps", ("RECEIVERS=3", "STAMPS=3")),
)


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if not shutil.which(tool)]


def search(flags: Sequence[str], folder: Path, *, optimise: str = "-O0", memory_mib: int = 2000) -> Verdict:
    """Look at every run of the model with these macros, up to the first error."""
    macros = [f"-D{flag}" for flag in flags]
    _run(["spin", "-a", *macros, str(MODEL)], folder)
    # -w: the code is spin's. SAFETY: nothing is asked of endless runs.
    _run(["gcc", "-w", optimise, "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={memory_mib}", "-o", "pan", "pan.c"], folder)
    said = _run(["./pan", f"-m{DEPTH}"], folder)
    states = re.search(r"(\d+) states, stored", said)
    errors = re.search(r"errors: (\d+)", said)
    if states is None or errors is None:
        raise AssertionError(f"the verifier said no verdict:\n{said}")
    broken = _broken(said) if errors[1] != "0" else None
    complete = broken is not None or not ("not completed" in said or "too small" in said)
    unreached = tuple(re.findall(r"ownership\.pml:(\d+, state \d+, .*)", said.partition("unreached")[2]))
    return Verdict(broken, complete, int(states[1]), unreached)


def _broken(said: str) -> Broken:
    found = re.search(r"assertion violated (.*)\(at depth", said)
    kinds = [kind for pattern, kind in _ASSERTIONS.items() if found and re.match(pattern, found[1])]
    if len(kinds) != 1:
        raise AssertionError(f"an error that is none of the model's assertions:\n{said}")
    return kinds[0]


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    """`make model`: the larger searches, with what each found."""
    if missing := missing_tools():
        print(f"missing: {', '.join(missing)} (Debian: apt-get install {' '.join(missing)})", file=sys.stderr)
        return 1
    good = True
    for one in LARGER:
        with tempfile.TemporaryDirectory() as folder:
            verdict = search(one.flags, Path(folder), optimise="-O2", memory_mib=12_000)
        found = "nothing breaks" if verdict.complete else "NOT ALL LOOKED AT"
        found = verdict.broken.value if verdict.broken else found
        as_said = verdict.complete and verdict.broken is one.broken
        print(f"{one.what:<50} {verdict.states:>12,} states: {found}{'' if as_said else ' (UNEXPECTED)'}", flush=True)
        good = good and as_said
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
