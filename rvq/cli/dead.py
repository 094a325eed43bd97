"""`rvq dead`: what was given up is seen, sent again, dropped. Owns the options, what is done to which, the words."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rvq.cli import values
from rvq.cli.command import ALL_DONE, FAULT, WrongUse, reachable_bus

if TYPE_CHECKING:
    import asyncio

    from rvq.bus import Bus
    from rvq.cli.letters import Found
    from rvq.cli.words import Words

ACTIONS = {
    "ls": "a line for each dead letter; changes nothing",
    "show": "all that is known of those with these IDs; changes nothing",
    "redrive": "send them to LABEL again as new messages, wait until they are done there, and drop the letters",
    "drop": "take them away for good",
}

LINGER_S = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "actions:\n" + "\n".join(f"  {name:<8} {text}" for name, text in ACTIONS.items())
    parser.add_argument("action", metavar="ACTION", choices=ACTIONS, help="ls, show, redrive or drop")
    parser.add_argument("label", metavar="LABEL", help="whose dead letters: work, or work.dead")
    parser.add_argument("ids", metavar="ID", nargs="*", help="which of them, as ls prints them")
    parser.add_argument("--all", action="store_true", help="with redrive and drop: all of them, and no ID")
    parser.add_argument("--json", action="store_true", help="with ls and show: all that is known, as lines of JSON")
    parser.add_argument(
        "--wait",
        metavar="S",
        type=values.seconds_above_0,
        help="seconds of quiet after which no more are expected (1.5)",
    )
    parser.add_argument(
        "--linger",
        metavar="S",
        type=values.seconds,
        help=f"with redrive: give up when S seconds pass in which nothing more is done ({LINGER_S:g})",
    )


def run(args: argparse.Namespace) -> int:
    """0 if everything that was asked for is done."""
    from rvq.aio import run as run_loop
    from rvq.cli.words import Words, saying_warnings
    from rvq.dead import SUFFIX, live_label
    from rvq.names import check_label

    args.label = check_label(live_label(args.label))
    check_label(args.label + SUFFIX)
    _check(args)
    words = Words()
    with saying_warnings(args.prog, words):
        return run_loop(_Visit(args, reachable_bus(args), words).run())


def _check(args: argparse.Namespace) -> None:
    action, changes = args.action, args.action in ("redrive", "drop")
    if action == "ls" and args.ids:
        raise WrongUse("ls lists all of them: give no ID, or use show")
    if action == "show" and not args.ids:
        raise WrongUse(f"say which to show: give an ID (rvq dead ls {args.label} lists them)")
    if changes and bool(args.ids) == args.all:
        which = "give either, not both" if args.all else f"give an ID or --all (rvq dead ls {args.label} lists them)"
        raise WrongUse(f"say which to {action}: {which}")
    for option, given, fits in (
        ("--all", args.all, changes),
        ("--json", args.json, not changes),
        ("--linger", args.linger is not None, action == "redrive"),
    ):
        if given and not fits:
            raise WrongUse(f"{option} means nothing to {action}: leave it out")


class _Visit:
    """One look at a label's dead letters, and what is done to them."""

    def __init__(self, args: argparse.Namespace, bus: Bus, words: Words) -> None:
        self._args = args
        self._bus = bus
        self._words = words
        self._chosen: Sequence[Found] = ()
        self._interrupted = False
        self._said_that_it_waits = False

    async def run(self) -> int:
        import asyncio

        from rvq.cli.signals import calling_on_signals
        from rvq.cli.turn import turn
        from rvq.dead import SUFFIX

        task = asyncio.current_task()
        assert task is not None
        label = self._args.label + SUFFIX
        with calling_on_signals(lambda: self._interrupt(task)):
            try:
                async with turn(f"{self._bus.interface} {self._bus.port} {self._bus.address} {label}", self._on_wait):
                    all_done = await self._visit(label)
            except asyncio.CancelledError:
                if not self._interrupted:
                    raise
                self._words.erase()
                return FAULT
        # Only now, when others may look: whoever reads this may take all day for it.
        if self._args.action == "ls":
            self._list(self._chosen)
        elif self._args.action == "show":
            self._show(self._chosen)
        return ALL_DONE if all_done else FAULT

    async def _visit(self, label: str) -> bool:
        from rvq.cli.collecting import WAIT_S, Collecting

        collecting = Collecting(label, self._bus, self._words, self._args.wait or WAIT_S, prog=self._args.prog)
        async with collecting.receiver:
            all_found = self._choose(await collecting.run())
            all_done = await self._change(self._chosen)
        if collecting.others:
            some = "another receiver listens" if collecting.others == 1 else f"{collecting.others} others listen"
            self._say(f"{some} to {label} too, in the same group: what they hold is not seen here")
        return all_found and all_done

    def _choose(self, found: Sequence[Found]) -> bool:
        """False if something is not there that was asked for."""
        args = self._args
        self._chosen = [one for one in found if not args.ids or one.id in args.ids]
        there = {one.id for one in found}
        missing = [id for id in dict.fromkeys(args.ids) if id not in there]
        for id in missing:
            self._say(f"there is no {id} among the dead letters of {args.label}")
        if not found and not missing:
            self._words.say(f"no dead letters of {args.label}: no process that runs now has given up a message of it")
        return not missing

    async def _change(self, chosen: Sequence[Found]) -> bool:
        if chosen and self._args.action == "drop":
            return self._drop(chosen)
        if chosen and self._args.action == "redrive":
            return await self._redrive(chosen)
        return True

    # --- what is done to them -----------------------------------------------------------------------------------------

    def _list(self, found: Sequence[Found]) -> None:
        from datetime import datetime

        from rvq.cli.letters import lines_of_json, table_of

        if self._args.json:
            _print(lines_of_json(found))
        elif found:
            _print(table_of(found, _columns_of_output(), datetime.now().astimezone()))
            letters = sum(one.letter is not None for one in found)
            other = f", and {_count(len(found) - letters, 'other message')}" if letters < len(found) else ""
            label = self._args.label
            self._words.say(f"{_count(letters, 'dead letter')} of {label}{other}; rvq dead show {label} ID tells all")

    def _show(self, chosen: Sequence[Found]) -> None:
        from rvq.cli.letters import lines_of_json, page_of

        _print(lines_of_json(chosen) if self._args.json else "\n".join(map(page_of, chosen)))

    def _drop(self, chosen: Sequence[Found]) -> bool:
        for one in chosen:
            one.message.ack()
        self._words.say(f"dropped {_count(len(chosen), 'dead letter')} of {self._args.label}")
        return True

    async def _redrive(self, chosen: Sequence[Found]) -> bool:
        from rvq.cli.redriving import redrive

        args = self._args
        letters = []
        for one in chosen:
            if one.letter is None:
                self._say(f"{one.id} is not a dead letter, and is left where it is")
            elif one.letter.lacks_body:
                self._say(f"{one.id} has lost its body, which was too large for a letter, and is left where it is")
            else:
                letters.append(one)
        linger = LINGER_S if args.linger is None else args.linger
        done = 0
        if letters:
            done = await redrive(args.label, self._bus, letters, self._words, prog=args.prog, linger=linger)
        rest = f", {len(chosen) - done} still on {args.label}.dead" if done < len(chosen) else ""
        self._words.say(f"redrove {_count(done, 'dead letter')} to {args.label}{rest}")
        return done == len(chosen)

    # --- words --------------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._words.say(f"{self._args.prog}: {text}")

    def _on_wait(self) -> None:
        if not self._said_that_it_waits:
            self._said_that_it_waits = True
            self._say(f"another rvq dead is at {self._args.label}.dead: waiting for it to end")

    def _interrupt(self, task: asyncio.Task[int]) -> None:
        self._interrupted = True
        task.cancel()


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _print(text: str) -> None:
    """Bytes of a name that is not UTF-8 are shown, whatever the terminal's encoding: a listing never fails by that."""
    if sys.stdout is None:
        raise WrongUse("standard output is closed: there is nowhere to print to")
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding or "utf-8", errors="backslashreplace"))
    sys.stdout.flush()


def _columns_of_output() -> int | None:
    """How wide the terminal is that reads this; None if no terminal does."""
    try:
        return (os.get_terminal_size(1).columns or 80) if os.isatty(1) else None
    except OSError:
        return None
