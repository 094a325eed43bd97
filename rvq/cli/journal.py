"""`rvq journal`: what is recorded is listed, checked, compared, deleted. Owns the options and the words."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from rvq.cli import values
from rvq.cli.command import ALL_DONE, FAULT, WrongUse
from rvq.cli.words import say

if TYPE_CHECKING:
    from rvq.journal.compare import Ids
    from rvq.journal.listing import Listed

ACTIONS = {
    "ls": "what there is: a line for each label and hour; --json for scripts",
    "verify": "check every byte; with two folders, also whether each has all messages of the other",
    "expire": "delete the hours that are older than --keep, or over before --before",
}
SHOWN_MAX = 20
"""Findings and differences that are told one by one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "actions:\n" + "\n".join(f"  {name:<8} {text}" for name, text in ACTIONS.items())
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help="ls, verify or expire")
    parser.add_argument("folder", metavar="DIR", help="the journal's folder")
    parser.add_argument("copy", metavar="COPY", nargs="?", help="with verify: the folder of another copy")
    parser.add_argument("--json", action="store_true", help="with ls: lines of JSON")
    parser.add_argument("--keep", metavar="T", type=values.span, help="with expire: how old is old, such as 7d")
    parser.add_argument(
        "--before", metavar="TIME", type=values.moment, help="with expire: a time in ISO 8601 with its zone"
    )


def run(args: argparse.Namespace) -> int:
    """1 if something is wrong with the journal."""
    _check(args)
    if args.action == "ls":
        return _list(args)
    if args.action == "verify":
        return _verify(args)
    return _expire(args)


def _check(args: argparse.Namespace) -> None:
    expires = args.action == "expire"
    for option, given, fits in (
        ("COPY", args.copy is not None, args.action == "verify"),
        ("--json", args.json, args.action == "ls"),
        ("--keep", args.keep is not None, expires),
        ("--before", args.before is not None, expires),
    ):
        if given and not fits:
            raise WrongUse(f"{option} means nothing to {args.action}: leave it out")
    if expires and (args.keep is None) == (args.before is None):
        raise WrongUse("say what is old: give --keep or --before, one of them")


# --- ls -------------------------------------------------------------------------------------------------------------


def _list(args: argparse.Namespace) -> int:
    from rvq.journal import JournalReader
    from rvq.journal.listing import listed

    hours = list(listed(JournalReader(args.folder)))
    if args.json:
        import json

        for hour in hours:
            print(json.dumps(hour._asdict(), ensure_ascii=False))
        return ALL_DONE
    rows: list[tuple[str, ...]] = [
        ("LABEL", "HOUR (UTC)", "RECORDERS", "SEGMENTS", "MESSAGES", "BYTES", "FROM", "TO", "")
    ]
    rows += [_row(hour) for hour in hours]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows if hours else ():
        cells = (
            cell.rjust(width) if 2 <= place <= 5 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    return ALL_DONE


def _row(hour: Listed) -> tuple[str, ...]:
    part = hour.part
    shown = f"{part[:4]}-{part[4:6]}-{part[6:8]} {part[8:]}h"
    span = ["" if at is None else time.strftime("%H:%M:%S", time.gmtime(at)) for at in (hour.first_at, hour.last_at)]
    counts = (f"{hour.recorders}", f"{hour.segments}", f"{hour.messages:,}", f"{hour.bytes:,}")
    return (hour.label, shown, *counts, *span, "open" if hour.open else "")


# --- verify -----------------------------------------------------------------------------------------------------------


def _verify(args: argparse.Namespace) -> int:
    from rvq.journal import verify

    folders = [args.folder] + ([args.copy] if args.copy else [])
    good = True
    for folder in folders:
        verified = verify(folder)
        for finding in verified.findings[:SHOWN_MAX]:
            grade = "note" if finding.is_harmless else "WRONG"
            say(f"{grade}: {finding.path} at byte {finding.position:,}: {finding.words}")
        if len(verified.findings) > SHOWN_MAX:
            say(f"… and {len(verified.findings) - SHOWN_MAX} findings more")
        good = good and verified.is_good
        state = "good" if verified.is_good else "DAMAGED"
        print(
            f"{folder}: {state}, {verified.rows:,} messages in {verified.segments} segments, {verified.bytes:,} bytes"
        )
    same = _compare(*folders) if args.copy and good else True
    return ALL_DONE if good and same else FAULT


def _compare(one: str, other: str) -> bool:
    from rvq.journal import JournalReader, compare
    from rvq.journal.messages import ids_of

    compared = compare(JournalReader(one), JournalReader(other), ids_of)
    for folder, only in ((one, compared.only_a), (other, compared.only_b)):
        if only:
            messages = sum(ids.last - ids.first + 1 for _, ids in only)
            say(f"only in {folder}: {messages:,} messages: {_shown(only)}")
    print(f"{compared.both:,} messages are in both")
    return compared.is_same


def _shown(only: list[tuple[str, Ids]]) -> str:
    shown = ", ".join(f"{label} {ids.sender:016x}-{ids.first}…{ids.last}" for label, ids in only[:SHOWN_MAX])
    return shown + (f" and {len(only) - SHOWN_MAX} runs more" if len(only) > SHOWN_MAX else "")


# --- expire -----------------------------------------------------------------------------------------------------------


def _expire(args: argparse.Namespace) -> int:
    from rvq.journal import expire

    before = args.before.timestamp() if args.before is not None else time.time() - args.keep
    gone = expire(args.folder, before)
    for path in gone:
        print(path)
    say(f"deleted {len(gone)} hour{'s' * (len(gone) != 1)}")
    return ALL_DONE
