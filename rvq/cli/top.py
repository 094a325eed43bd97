"""`rvq top`: who is on the bus and what they do, as it happens. Owns the options and the exit codes; only listens.

The page is served by `rvq.cli.paging`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

from rvq.cli import values
from rvq.cli.command import ALL_DONE, FAULT, WrongUse, reachable_bus
from rvq.cli.paging import add_web_arguments, check_web, serve
from rvq.cli.words import say

if TYPE_CHECKING:
    from rvq.bus import Bus


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "labels", metavar="LABEL", nargs="*", type=values.filled, help="these only; all, if none is named"
    )
    parser.add_argument(
        "--once", action="store_true", help="listen until everyone has spoken, print one picture, leave"
    )
    parser.add_argument("--json", action="store_true", help="with --once: for scripts, as docs/operations.md has it")
    add_web_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 if there was something to see, or somebody looked; 1 if nobody is on the bus."""
    from rvq.aio import run as run_loop
    from rvq.cli.words import Words, saying_warnings
    from rvq.names import check_label

    for label in args.labels:
        check_label(label)
    if args.json and not args.once:
        raise WrongUse("--json is for one picture: give --once too")
    if args.once and args.web is not None:
        raise WrongUse("--once is one picture and --web a page that stays: give one of them")
    check_web(args)
    bus = reachable_bus(args)
    if args.web is not None:
        return run_loop(serve(args, bus))
    if args.once:
        with saying_warnings(args.prog, Words()):
            return run_loop(_once(args, bus))
    _check_terminal()
    return run_loop(_watch(args, bus))


def _check_terminal() -> None:
    if not sys.stdout.isatty():
        raise WrongUse("standard output is no terminal: give --once for one picture, and --json for scripts")
    try:
        import rich  # noqa: F401
    except ImportError:
        raise WrongUse("the full screen needs rich: pip install 'rvq[top]', or give --once") from None


async def _once(args: argparse.Namespace, bus: Bus) -> int:
    from rvq.aio.observer import Observer

    async with Observer(bus, args.labels) as observer:
        await observer.complete()
        picture = observer.snapshot()
    if args.json:
        print(json.dumps(picture, ensure_ascii=False))
    elif _is_there(picture):
        _print(picture)
    if _is_there(picture):
        return ALL_DONE
    what = f"nobody sends or listens to {', '.join(map(repr, args.labels))}" if args.labels else "nobody is on this bus"
    say(f"{args.prog}: {what} ({bus.interface}, {bus.network} port {bus.port}): see that these are the others', too")
    return FAULT


def _is_there(picture: dict[str, Any]) -> bool:
    return bool(picture["totals"]["receivers"] or picture["totals"]["senders"])


def _print(picture: dict[str, Any]) -> None:
    from rvq.cli.board import everything
    from rvq.cli.columns import plain

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in everything(picture, width):
        print(plain(line))


async def _watch(args: argparse.Namespace, bus: Bus) -> int:
    from rvq.aio.observer import Observer
    from rvq.cli.screen import show
    from rvq.cli.signals import calling_on_signals

    stopping = asyncio.Event()
    async with Observer(bus, args.labels) as observer:
        with calling_on_signals(stopping.set):
            await show(observer.snapshot, stopping)
    return ALL_DONE
