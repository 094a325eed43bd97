"""What the commands that give orders have in common. Owns finding the label, and saying what became of it."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable

from rvq.bus import Bus
from rvq.cli.command import ALL_DONE, WrongUse
from rvq.cli.words import say


def add_id(parser: argparse.ArgumentParser) -> None:
    """Which receiver."""
    parser.add_argument(
        "id", metavar="ID", help="the receiver's id, or its first digits, as rvq-listen and logs print it"
    )
    parser.add_argument("--label", metavar="L", help="the label that it listens to")


def add_group(parser: argparse.ArgumentParser) -> None:
    """Which group."""
    parser.add_argument("label", metavar="LABEL", help="the label that the group listens to")
    parser.add_argument("group", metavar="GROUP", nargs="?", default="default", help="the group (default: default)")


def label_of(args: argparse.Namespace, bus: Bus, id: str) -> str:
    """The label that was told."""
    if args.label is None:
        raise WrongUse(f"which label does {id} listen to? Give --label")
    return str(args.label)


def carry_out(prog: str, order: Awaitable[object], what: str) -> int:
    """Gives the order, and says in a line what was done. What goes wrong is raised."""
    from rvq.aio import run as run_loop
    from rvq.aio.admin import Ordered

    async def ask() -> Ordered:
        ordered = await order
        assert isinstance(ordered, Ordered)
        return ordered

    ordered = run_loop(ask())
    who = ", ".join(ordered.receivers)
    say(f"{prog}: {what}: {who} of {ordered.label} (group {ordered.group})")
    return ALL_DONE
