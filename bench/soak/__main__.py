"""`make soak MINUTES=30 SEED=7`, or `python -m bench.soak`: chaos, the account of every message, and a report."""

from __future__ import annotations

import argparse
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.figures import RESULTS, machine
from bench.soak import judge
from bench.soak.chaos import Chaos
from bench.soak.crew import Crew
from bench.soak.judge import Account
from bench.soak.measure import Measured, measure
from bench.soak.report import Report, in_words, keep
from bench.soak.schedule import HOSTS, UPTIME_S_MAX, draw, schedule_in_words
from bench.soak.story import Story, tell
from tests.lan.network import Unavailable, check_tools

RATE = 15.0
"""Messages per second of each sender: enough for every fault to hit some, and little enough for a ledger in SQLite on a
busy machine: each of its transactions waits for the disk, and twelve handlers for each other."""
SEEDS = 1_000_000
CANNOT = 3
"""Exit code: this machine cannot have such a network."""
INTERRUPTED = 130


def soak(seed: int, seconds: float, rate: float, folder: Path) -> tuple[Story, Account, Measured, float]:
    """One soak from start to end: the story, the account, what was measured, and when it began."""
    with Crew(folder, rate) as crew:
        if not crew.shifts_clocks:
            say("no time namespaces here: monotonic clocks are those of the machine, and only wall clocks are set")
        ages = random.Random(f"ages {seed}")
        crew.start_all(ages.randint(0, UPTIME_S_MAX) for _ in HOSTS)
        chaos = Chaos(crew, draw(seed, seconds), say)
        try:
            chaos.run(seconds)
        finally:
            crew.end()
        story = tell(crew, chaos.spans, chaos.troubles)
    return story, judge.judge(story), measure(story, chaos.samples, chaos.began_at), chaos.began_at


def say(words: str) -> None:
    print(words, flush=True)


def command(seed: int, seconds: float, rate: float) -> str:
    """Replays the schedule. What the machine makes of it is another matter."""
    paced = f" RATE={rate:g}" if rate != RATE else ""
    return f"make soak MINUTES={seconds / 60:g} SEED={seed}{paced}"


def main(arguments: list[str]) -> int:
    args = parse(arguments)
    seconds = args.minutes * 60
    if args.list:
        say("\n".join(schedule_in_words(draw(args.seed, seconds))))
        return 0
    try:
        check_tools()
    except Unavailable as reason:
        say(f"no soak here: {reason}")
        return CANNOT
    # Ctrl-C and `kill` end it by the same way: nothing of it stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="rvq-soak-"))
    say(f"soak of {args.minutes:g} minutes: {command(args.seed, seconds, args.rate)}")
    try:
        return soak_and_report(args, seconds, folder)
    except Unavailable as reason:
        say(f"no soak here: {reason}")
        return CANNOT
    except KeyboardInterrupt:
        say("ended before its time: its processes and its network are gone, and nothing is judged")
        return INTERRUPTED
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def soak_and_report(args: argparse.Namespace, seconds: float, folder: Path) -> int:
    facts = machine()
    began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    again = command(args.seed, seconds, args.rate)
    story, account, measured, began_at = soak(args.seed, seconds, args.rate, folder)
    told = Report(again, began, began_at, seconds, facts, story, account, measured)
    place = keep(told, args.results / f"soak-{time.strftime('%Y%m%d-%H%M%S')}-{args.seed}")
    if not account.ok or args.keep:
        keep_logs(folder, place)
    say_result(account, in_words(told), began_at, place)
    return 0 if account.ok else 1


def keep_logs(folder: Path, place: Path) -> None:
    shutil.copytree(folder, place / "logs", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.key"))


def say_result(account: Account, lines: Iterable[str], began_at: float, place: Path) -> None:
    say("\n" + "\n".join(lines))
    if account.ok:
        say("\nevery message is accounted for")
    else:
        say(f"\n{len(account.violations)} broken promises:")
        for line in judge.words(account.violations, began_at):
            say(line)
    say(f"report: {place / 'report.html'}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, help="which schedule; a new one unless told")
    parser.add_argument("--rate", type=float, default=RATE, help="messages per second of each of the three senders")
    parser.add_argument("--list", action="store_true", help="say the schedule, and do nothing")
    parser.add_argument("--keep", action="store_true", help="keep all logs also if nothing is wrong")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where reports are kept")
    args = parser.parse_args(arguments)
    if not 0.1 <= args.minutes <= 24 * 60:
        parser.error(f"--minutes {args.minutes:g}: give 0.1 to {24 * 60}")
    if not 1 <= args.rate <= 1000:
        parser.error(f"--rate {args.rate:g}: give 1 to 1000")
    if args.seed is None:
        args.seed = secrets.randbelow(SEEDS)
    return args


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
