"""`rvq-listen`: messages in, lines out, or a command for each. Owns the options and what they mean together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rvq.cli import values
from rvq.cli.command import WrongUse, execute, reachable_bus
from rvq.cli.measuring import add_metrics

GROUP = "default"
"""Who shares the work with whom, if nothing else is said."""


def main(arguments: Sequence[str] | None = None) -> int:
    return execute("rvq-listen", "listen", arguments)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("label", metavar="LABEL", help="what to listen for")
    parser.add_argument("--group", metavar="G", help=f"who to share the work with (default: {GROUP})")
    parser.add_argument("--weight", metavar="W", type=values.weight, help="shares to take, 1 to 64 (1)")
    parser.add_argument(
        "--tap", action="store_true", help="see every message and own none: whoever shares the work does not notice"
    )
    parser.add_argument(
        "--meta", action="store_true", help="print all that is known of each message, as a line of JSON"
    )
    parser.add_argument("--count", metavar="N", type=values.count, help="leave after N messages")
    parser.add_argument("--idle", metavar="S", type=values.seconds_above_0, help="leave after S seconds without any")
    parser.add_argument(
        "--exec",
        metavar="CMD",
        type=values.filled,
        help="print nothing, but run CMD in a shell for each message, its body on standard input (RVQ_MESSAGE_ID and"
        " RVQ_MESSAGE_ATTEMPT are set): exit code 0 means done, any other that it is tried again,"
        " at once and then after growing pauses",
    )
    parser.add_argument("--concurrency", metavar="P", type=values.count, help="with --exec: run up to P at once (1)")
    parser.add_argument(
        "--attempts",
        metavar="N",
        type=values.count,
        help="with --exec: a message that failed N times goes to LABEL.dead",
    )
    parser.add_argument(
        "--from-journal",
        metavar="DIR",
        help="also what was recorded in DIR before the group came, or while nobody of it was there: with what is sent,"
        " each message once",
    )
    add_metrics(parser)


def run(args: argparse.Namespace) -> int:
    """0 if everything that came was done."""
    from rvq.aio import run as run_loop
    from rvq.cli.listening import Listening
    from rvq.cli.words import Words, saying_warnings
    from rvq.names import check_group, check_label

    check_label(args.label)
    if args.group is not None:
        check_group(args.group)
    _check(args)
    words = Words()
    with saying_warnings(args.prog, words):
        return run_loop(Listening(args, reachable_bus(args), words).run())


def _check(args: argparse.Namespace) -> None:
    if args.tap:
        for option in ("exec", "group", "weight", "from-journal"):
            if getattr(args, option.replace("-", "_")) is not None:
                raise WrongUse(f"--{option} is for who handles messages, and --tap only sees them: give one of them")
    if args.exec is None:
        for option in ("concurrency", "attempts"):
            if getattr(args, option) is not None:
                raise WrongUse(f"--{option} says how commands are run: give --exec too")
        if sys.stdout is None:
            raise WrongUse("standard output is closed: there is nowhere to print to")
    elif args.meta:
        raise WrongUse("--meta says what to print, and --exec prints nothing: give one of them")


if __name__ == "__main__":
    sys.exit(main())
