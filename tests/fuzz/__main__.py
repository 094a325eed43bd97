"""`python -m tests.fuzz --minutes 10`: every decoder in turn, from the corpus on, for its share of the time.

With atheris (`pip install atheris`, the extra `fuzz`) it looks for bytes that reach new code; without it, it bends what
the corpus has. What breaks a decoder is written beside the corpus, as `found-...`, and the exit code is 1: move it into
the corpus, where `test_fuzz` tries it each time, and fix the decoder.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random

from tests.fuzz.bending import bend
from tests.fuzz.targets import TARGETS, Target

CORPUS = Path(__file__).parent / "corpus"
LENGTH_MAX = 8192


def seeds(name: str) -> list[bytes]:
    """What the corpus has for a target."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))] or [b""]


def bent(target: Target, name: str, seconds: float, seed: int) -> tuple[int, bytes | None]:
    """Without atheris: how many were tried, and what broke it."""
    random, pool, tried, until = Random(f"{name} {seed}"), seeds(name), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        data = bend(random, pool)
        tried += 1
        try:
            target(data)
        except Exception:
            traceback.print_exc()
            return tried, data
    return tried, None


def guided(name: str, seconds: float, seed: int) -> bytes | None:
    """With atheris, in a process of its own: libFuzzer ends the one that it runs in."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "new").mkdir()
        command = [sys.executable, "-m", "tests.fuzz.guided", name, str(work / "new"), str(CORPUS / name)]
        options = [f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}", f"-max_len={LENGTH_MAX}"]
        options += [
            f"-artifact_prefix={work}/",
            "-rss_limit_mb=1024",
            "-timeout=20",
            "-verbosity=0",
            "-print_final_stats=1",
        ]
        try:
            done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=seconds + 120)
        except subprocess.TimeoutExpired:
            print("    did not end in time: this machine is too busy, or it hangs; try it --only", flush=True)
            return None
        units = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
        print(
            f"    {units[0] if units else '?'} tried, {len(list((work / 'new').iterdir()))} reached new code",
            flush=True,
        )
        if done.returncode == 0:
            return None
        print(done.stderr[-3000:])
        broke = [path for path in work.iterdir() if path.is_file()]
        return broke[0].read_bytes() if broke else b""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="of all targets together")
    parser.add_argument("--only", action="append", choices=sorted(TARGETS), help="this target; again for others")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--plain", action="store_true", help="without atheris, even if it is there")
    options = parser.parse_args(arguments)
    names = options.only or list(TARGETS)
    each, bad = 60 * options.minutes / len(names), 0
    is_guided = find_spec("atheris") is not None and not options.plain
    print(f"{'with' if is_guided else 'without'} atheris, {each:.0f} s for each of {len(names)}, --seed {options.seed}")
    for name in names:
        print(name, flush=True)
        if is_guided:
            found = guided(name, each, options.seed)
        else:
            tried, found = bent(TARGETS[name], name, each, options.seed)
            print(f"    {tried} tried", flush=True)
        if found is not None:
            bad += 1
            path = CORPUS / f"found-{name}-{hashlib.sha256(found).hexdigest()[:12]}"
            path.write_bytes(found)
            print(f"    BROKEN by {path}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
