"""`rvq replay`: what was recorded is sent once more. Owns the options, the bar and the count at the end."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from rvq.cli import values
from rvq.cli.account import Account
from rvq.cli.command import ALL_DONE, FAULT, WrongUse, reachable_bus

if TYPE_CHECKING:
    from rvq.bus import Bus
    from rvq.cli.words import Words

LINGER_S = 30.0
_UNSEEN = (
    "nobody of group {!r} is on {!r}, or no recorder told within {:g} s from where on it gets messages: start both,"
    " a receiver of the group and the recorder"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the journal's folder")
    parser.add_argument(
        "--label", metavar="L", action="append", type=values.filled, help="which labels; all that are there unless told"
    )
    parser.add_argument("--to", metavar="LABEL", help="send to this label, not to the one that it was recorded of")
    parser.add_argument("--group", metavar="G", help="into this group only: all others do not notice")
    chosen = parser.add_argument_group("which messages")
    chosen.add_argument("--since", metavar="TIME", type=values.moment, help="sent at TIME or later: ISO 8601 with zone")
    chosen.add_argument("--until", metavar="TIME", type=values.moment, help="sent before TIME")
    chosen.add_argument("--key", metavar="K", type=values.filled, help="of this key")
    chosen.add_argument(
        "--sender", metavar="ID", type=values.identity, help="of the sender with this id (16 hex digits)"
    )
    chosen.add_argument("--sequence", metavar="A-B", type=values.run, help="with these sequences, such as 100-200 or 7")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--missed",
        action="store_true",
        help="with --group: what was recorded before the group came; with what it gets live, each message once",
    )
    which.add_argument(
        "--undone",
        action="store_true",
        help="with --group: what was the group's and is not done, of senders that are gone; each once",
    )
    parser.add_argument("--rate", metavar="N", type=values.rate, help="at most N messages per second")
    parser.add_argument("--speed", metavar="X", type=values.factor, help="at the pace of then, times X: 1 is as it was")
    parser.add_argument(
        "--linger",
        metavar="S",
        type=values.seconds,
        default=LINGER_S,
        help="after the last message, give up when they are not done in S seconds (default: %(default)g)",
    )
    parser.add_argument("--quiet", action="store_true", help="say nothing but what went wrong")


def run(args: argparse.Namespace) -> int:
    """0 if all that was sent is done."""
    from rvq.aio import run as run_loop
    from rvq.cli.words import Words, saying_warnings
    from rvq.journal import JournalReader
    from rvq.names import check_group, check_label

    for name in (*(args.label or ()), *([args.to] if args.to is not None else ())):
        check_label(name)
    if args.group is not None:
        check_group(args.group)
    _check(args)
    there = JournalReader(args.folder).labels()
    missing = [label for label in args.label or () if label not in there]
    if missing:
        raise WrongUse(f"nothing of {missing[0]!r} is in {args.folder}: there is {', '.join(there) or 'nothing'}")
    bus = reachable_bus(args)
    words = Words(quiet=args.quiet)
    account = Account(time.monotonic())
    code = FAULT
    try:
        with saying_warnings(args.prog, words):
            code = run_loop(_replay(args, args.label or there, bus, words, account))
    except KeyboardInterrupt:
        pass
    words.say(account.summary(time.monotonic()), urgent=code != ALL_DONE)
    return code


def _check(args: argparse.Namespace) -> None:
    for option in ("missed", "undone"):
        if not getattr(args, option):
            continue
        if args.group is None:
            raise WrongUse(f"--{option} depends on whose: give --group")
        for other in ("to", "since", "until", "key", "sender", "sequence", "rate", "speed"):
            if getattr(args, other) is not None:
                raise WrongUse(f"--{option} says which messages, and when: leave --{other} out")


async def _replay(args: argparse.Namespace, labels: list[str], bus: Bus, words: Words, account: Account) -> int:
    import rvq
    from rvq.errors import NotDelivered

    first, last = args.sequence or (1, None)
    chosen = rvq.Chosen(
        since=args.since and args.since.timestamp(),
        until=args.until and args.until.timestamp(),
        key=args.key,
        sender=args.sender,
        first=first,
        last=last,
    )
    for label in labels:
        before = account.sent

        def note(sent: int, undone: int, before: int = before) -> None:
            account.sent, account.undone = before + sent, undone
            words.draw(f"sent {account.sent}, done {account.done}")

        common: dict[str, Any] = {"bus": bus, "linger": args.linger, "on_sent": note}
        try:
            if args.missed:
                await rvq.catch_up(args.folder, label, args.group, **common)
            elif args.undone:
                await rvq.offer_again(args.folder, label, args.group, **common)
            else:
                pace = {"rate": args.rate, "speed": args.speed}
                await rvq.replay(args.folder, label, to=args.to, group=args.group, chosen=chosen, **pace, **common)
        except TimeoutError:
            words.erase()
            words.say(f"{args.prog}: {_UNSEEN.format(args.group, label, args.linger)}", urgent=True)
            return FAULT
        except NotDelivered as error:
            account.undone = error.undone
            words.erase()
            words.say(f"{args.prog}: {error}", urgent=True)
            return FAULT
        finally:
            words.erase()
        account.undone = 0
    return ALL_DONE
