"""`rvq-send`: lines in, messages out, and the count at the end. Owns the options and what they mean together."""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rvq.cli import values
from rvq.cli.account import Account
from rvq.cli.command import FAULT, WrongUse, execute, reachable_bus
from rvq.cli.measuring import add_metrics, measuring
from rvq.cli.words import Words, saying_warnings

if TYPE_CHECKING:
    from rvq.cli.source import Source

LINGER_S = 30.0


def main(arguments: Sequence[str] | None = None) -> int:
    return execute("rvq-send", "send", arguments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", help="where to send")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="a message; without any, each line of input is one")
    parser.add_argument("--file", metavar="F", help="read lines from F, not from standard input (which is -)")
    parser.add_argument("--json", action="store_true", help="each TEXT or line is JSON: send the object that it says")
    keys = parser.add_mutually_exclusive_group()
    keys.add_argument("--key", metavar="K", type=values.filled, help="one receiver handles all, in order")
    keys.add_argument("--key-field", metavar="NAME", help="with --json: the field that holds the key of each")
    times = parser.add_mutually_exclusive_group()
    times.add_argument("--delay", metavar="S", type=values.seconds, help="not to be handled for S seconds")
    times.add_argument(
        "--due", metavar="TIME", type=values.moment, help="not to be handled before TIME: 2030-01-31T18:00:00+01:00"
    )
    parser.add_argument("--ttl", metavar="S", type=values.seconds_above_0, help="dropped if not handled in S seconds")
    parser.add_argument("--urgent", action="store_true", help="handled before those that wait at its receiver")
    parser.add_argument("--rate", metavar="N", type=values.rate, help="at most N messages per second")
    parser.add_argument(
        "--linger",
        metavar="S",
        type=values.seconds,
        default=LINGER_S,
        help="after the last line, give up when S seconds pass in which something was due and nothing more is done"
        " (default: %(default)g)",
    )
    add_metrics(parser)
    parser.add_argument("--quiet", action="store_true", help="say nothing but what went wrong")


def run(args: argparse.Namespace) -> int:
    """0 if all is done. Says the count at the end however it ended."""
    account = Account(time.monotonic())
    words = Words(quiet=args.quiet)
    try:
        code = _run(args, account, words)
    except KeyboardInterrupt:  # before or after the loop, which has its own way
        code = FAULT
    words.say(account.summary(time.monotonic()), urgent=code != 0)
    return code


def _run(args: argparse.Namespace, account: Account, words: Words) -> int:
    from rvq.aio import run as run_loop
    from rvq.aio.times import due_time
    from rvq.cli.delivery import Delivery
    from rvq.cli.dues import Timing
    from rvq.names import check_label

    check_label(args.label)
    due_time(args.delay, args.due)
    for option in ("key", "key_field", "delay", "due"):
        if args.urgent and getattr(args, option):
            name = option.replace("_", "-")
            raise WrongUse(f"--{name} gives each message its place, and --urgent another: give one of them")
    timing = Timing(args.delay, args.due, args.ttl, args.urgent)
    bus = reachable_bus(args)
    source = _source(args)
    if source.is_terminal:
        words.say("each line is a message; Ctrl-D ends")
    with saying_warnings(args.prog, words):
        measure = partial(measuring, args, words)
        options = {"rate": args.rate, "linger": args.linger, "timing": timing, "measure": measure}
        delivery = Delivery(args.prog, account, words, **options)
        return run_loop(delivery.run(args.label, bus, source))


def _source(args: argparse.Namespace) -> Source:
    from rvq.cli.bodies import LineReader
    from rvq.cli.source import Arguments, Lines

    if args.texts and args.file is not None:
        raise WrongUse("TEXT and --file both say what to send: give one of them")
    if args.key_field is not None and not args.json:
        raise WrongUse("--key-field names a field of objects: give --json too")
    what = "TEXT" if args.texts else "line"
    reader = LineReader(as_json=args.json, key=args.key, key_field=args.key_field, what=what)
    return Arguments(args.texts, reader) if args.texts else Lines(_open(args.file), reader)


def _open(path: str | None) -> int:
    if path is None or path == "-":
        if sys.stdin is None:
            raise WrongUse("standard input is closed: give TEXT or --file")
        return 0
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise WrongUse(f"cannot read {path}: {error.strerror}") from error
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        raise WrongUse(f"cannot read {path}: it is a directory")
    return fd


if __name__ == "__main__":
    sys.exit(main())
