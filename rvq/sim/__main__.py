"""`python -m rvq.sim`: many random worlds at once, or one of them again with its story.

Exit code 0 if every promise was kept in every world, 1 if not; then the verdict and the command that replays it are
printed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice

from rvq.sim.checkers import Verdict
from rvq.sim.mutants import MUTANTS, build_named
from rvq.sim.workloads import run_seed

CHUNK = 10
"""Seeds that one worker runs in one go: enough that handing them over costs nothing."""

PROGRESS_S = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.seed is not None:
        return replay(
            options.seed,
            options.mutant,
            options.verbose,
            sealed=options.sealed,
            flooded=options.flooded,
            fanout=options.fanout,
        )
    what = (options.start, options.seeds, options.jobs, options.mutant, options.stop_after)
    return swarm(*what, sealed=options.sealed, flooded=options.flooded, fanout=options.fanout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rvq.sim", description="Run rvq in simulated worlds and judge them."
    )
    parser.add_argument("--seeds", type=_positive, default=200, metavar="N", help="how many worlds (default 200)")
    parser.add_argument("--start", type=int, default=0, metavar="S", help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, metavar="K", help="only this world")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="J", help="worker processes")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="switch one rule of the protocol off")
    parser.add_argument("--sealed", action="store_true", help="on a sealed bus, with an attacker on the network")
    parser.add_argument("--fanout", action="store_true", help="without multicast: everything is sent to each")
    parser.add_argument("--flooded", action="store_true", help="with a stranger on the bus, who says what he likes")
    parser.add_argument(
        "--stop-after", type=_positive, default=5, metavar="F", help="stop after F bad worlds (default 5)"
    )
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="with --seed: tell the story; -vv: with every frame"
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def replay_command(
    seed: int, mutant: str | None = None, *, sealed: bool = False, flooded: bool = False, fanout: bool = False
) -> str:
    """The one command that runs this world again."""
    options = (
        (f" --mutant {mutant}" if mutant else "") + " --sealed" * sealed + " --flooded" * flooded + " --fanout" * fanout
    )
    return f"python -m rvq.sim --seed {seed}" + options


def replay(
    seed: int, mutant: str | None, verbose: int, *, sealed: bool = False, flooded: bool = False, fanout: bool = False
) -> int:
    """One world, with its story if asked for."""
    began = time.perf_counter()
    verdict = run_seed(
        seed, build=build_named(mutant, sealed=sealed, flooded=flooded, fanout=fanout), verbose=verbose, out=print
    )
    print(verdict)
    print(f"{time.perf_counter() - began:.2f} s", file=sys.stderr)
    if not verdict.ok and not verbose:
        print(
            f"its story: {replay_command(seed, mutant, sealed=sealed, flooded=flooded, fanout=fanout)} -v",
            file=sys.stderr,
        )
    return 0 if verdict.ok else 1


def run_seeds(
    seeds: Sequence[int], mutant: str | None, sealed: bool = False, flooded: bool = False, fanout: bool = False
) -> list[Verdict]:
    """What one worker does."""
    build = build_named(mutant, sealed=sealed, flooded=flooded, fanout=fanout)
    return [run_seed(seed, build=build) for seed in seeds]


def swarm(
    start: int,
    count: int,
    jobs: int,
    mutant: str | None = None,
    stop_after: int = 5,
    *,
    sealed: bool = False,
    flooded: bool = False,
    fanout: bool = False,
) -> int:
    """Many worlds over all cores."""
    began = time.perf_counter()
    tally = _Tally(count, mutant, sealed, flooded, fanout)
    for verdict in _verdicts(start, count, jobs, mutant, sealed, flooded, fanout):
        tally.add(verdict)
        if len(tally.bad) >= stop_after:
            break
    tally.end(time.perf_counter() - began)
    return 1 if tally.bad else 0


def _verdicts(
    start: int, count: int, jobs: int, mutant: str | None, sealed: bool, flooded: bool, fanout: bool
) -> Iterator[Verdict]:
    """Verdicts as they come. Only a few chunks are handed out at a time, so that stopping early is quick."""
    chunks = (range(first, min(first + CHUNK, start + count)) for first in range(start, start + count, CHUNK))
    if jobs == 1:
        for chunk in chunks:
            for seed in chunk:
                yield from run_seeds([seed], mutant, sealed, flooded, fanout)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting: set[Future[list[Verdict]]] = {
            pool.submit(run_seeds, c, mutant, sealed, flooded, fanout) for c in islice(chunks, 2 * jobs)
        }
        while waiting:
            finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            waiting |= {
                pool.submit(run_seeds, c, mutant, sealed, flooded, fanout) for c in islice(chunks, len(finished))
            }
            for future in finished:
                yield from future.result()


class _Tally:
    """Counts verdicts and says on stderr how far it is."""

    def __init__(self, count: int, mutant: str | None, sealed: bool, flooded: bool, fanout: bool) -> None:
        self.bad: list[Verdict] = []
        self._count = count
        self._mutant = mutant
        self._sealed = sealed
        self._flooded, self._fanout = flooded, fanout
        self._worlds = self._messages = self._repeats = 0
        self._virtual_s = 0.0
        self._told_at = time.perf_counter()

    def add(self, verdict: Verdict) -> None:
        self._worlds += 1
        self._messages += verdict.submitted
        self._repeats += verdict.repeats
        self._virtual_s += verdict.virtual_s
        if not verdict.ok:
            self.bad.append(verdict)
            how = {"sealed": self._sealed, "flooded": self._flooded, "fanout": self._fanout}
            print(f"{verdict}\nreplay: {replay_command(verdict.seed, self._mutant, **how)}", flush=True)
        self._progress()

    def _progress(self) -> None:
        if time.perf_counter() - self._told_at >= PROGRESS_S and sys.stderr.isatty():
            self._told_at = time.perf_counter()
            print(
                f"\r{self._worlds} of {self._count} worlds, {len(self.bad)} bad ", end="", file=sys.stderr, flush=True
            )

    def end(self, seconds: float) -> None:
        start = "\r" if sys.stderr.isatty() else ""
        print(
            f"{start}{self._worlds} of {self._count} worlds in {seconds:.1f} s: {len(self.bad)} bad, "
            f"{self._messages:,} messages, {self._repeats} explained repeats, {self._virtual_s:,.0f} virtual s",
            file=sys.stderr,
        )


if __name__ == "__main__":
    sys.exit(main())
