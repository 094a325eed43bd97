"""The bench `instructions`: how many instructions single steps take, which no busy machine changes.

Owns running valgrind's callgrind on `bench.micro.counted`, and reading its totals.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, Skipped
from bench.group.fleet import ROOT, Trouble
from bench.micro.counted import MARK, Step, calls_of, steps

COUNTED_S_MAX = 300.0
SHARE_QUICK = 0.1
"""Of the calls, to see that it works."""
_PARTS_OF_STEP = 3
"""Between the marks: what comes before, so many calls, and twice as many."""


def run(quick: bool) -> Iterator[Figure]:
    if not shutil.which("valgrind"):
        raise Skipped("needs valgrind (apt-get install valgrind)")
    share = SHARE_QUICK if quick else 1.0
    counted = steps()
    for step, count in zip(counted, per_call(counted, count_parts(counted, share), share), strict=True):
        unit = "instructions" if step.parts == 1 else f"instructions/{step.part}"
        yield Figure(step.what, count / step.parts, unit)


def per_call(counted: list[Step], parts: list[int], share: float) -> list[float]:
    """Of each step."""
    if len(parts) != _PARTS_OF_STEP * len(counted):
        raise Trouble(f"callgrind wrote {len(parts)} parts, not {_PARTS_OF_STEP} of each of {len(counted)} steps")
    singles, doubles = parts[1::_PARTS_OF_STEP], parts[2::_PARTS_OF_STEP]
    return [
        (double - single) / calls_of(step, share)
        for step, single, double in zip(counted, singles, doubles, strict=True)
    ]


def count_parts(counted: list[Step], share: float) -> list[int]:
    """Instructions from the start to the first mark, from there to the second, and so on. Raises Trouble."""
    with tempfile.TemporaryDirectory(prefix="rvq-bench-") as folder:
        out = Path(folder) / "out"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--dump-before={MARK}"]
        command = [*valgrind, sys.executable, "-m", "bench.micro.counted", str(share), *(step.what for step in counted)]
        # Hashes of strings and their places in dictionaries are the same each time.
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=COUNTED_S_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            raise Trouble(f"not counted within {COUNTED_S_MAX:g} s") from None
        if done.returncode:
            raise Trouble(f"valgrind: {done.stderr.strip()[-1500:]}")
        written = sorted(Path(folder).glob("out.*"), key=lambda path: int(path.suffix[1:]))
        return [_total(path) for path in written]


def _total(path: Path) -> int:
    for line in path.read_text().splitlines():
        if line.startswith("totals:"):
            return int(line.split()[1])
    raise Trouble(f"callgrind wrote no total in {path.name}")
