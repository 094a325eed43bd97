"""How every command runs: options in, exit code out, and what goes wrong in one line on standard error.

Owns the list of commands, the exit codes, and which error is whose fault. Knows nothing of what a command does.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from rvq.bus import Bus
from rvq.cli.options import add_bus_arguments, bus_from
from rvq.cli.words import say
from rvq.errors import BadArgument, BadLabel, BadMessage, BusError, MessageTooLarge, RvqError

ALL_DONE: Final = 0
FAULT: Final = 1
"""Not everything was done, or something broke on the way."""
WRONG_USE: Final = 2

COMMANDS: Final = {
    "send": "send each TEXT, or each line of standard input, as one message, and wait until all are done",
    "listen": "print each message on a line of its own, or run a command for it",
    "top": "watch who is on the bus and what they do, as it happens; only listens",
    "dead": "see what was given up, send it again, or drop it: rvq dead ls LABEL",
    "record": "write labels to disk as they come, to be read and replayed: rvq record DIR --label work",
    "replay": "send what was recorded once more, to all or into one group: rvq replay DIR --label work",
    "journal": "see what is recorded, check it, compare two copies, delete what is old: rvq journal ls DIR",
    "drain": "have a receiver finish what is its own and leave: rvq drain 3f2a",
    "weight": "give a receiver another share of the work: rvq weight 3f2a 3",
    "pause": "have all receivers of a group start nothing more: rvq pause work default",
    "resume": "have a paused group go on: rvq resume work default",
    "spark": "what a journal says, with Spark: audit, stats, compact, replay: rvq spark audit DIR",
    "key": "make and change key files of sealed buses: rvq key new FILE",
    "demo": "watch a sender and three receivers on this machine: one joins, one is killed, and everything is counted",
    "doctor": "see whether this host can be on the bus, and what to change if not",
}
"""Each is a module beside this one, with `add_arguments(parser)` and `run(args)`."""


class WrongUse(Exception):
    """What was asked for cannot be. Said in one line; exit code 2."""


def dispatch(arguments: Sequence[str] | None = None) -> int:
    """`rvq COMMAND …`, which is `rvq-COMMAND …` where that exists."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in COMMANDS:
        return execute(f"rvq {given[0]}", given[0], given[1:])
    parser = argparse.ArgumentParser(
        prog="rvq",
        description="A work queue with no broker: senders multicast, and exactly one receiver handles each message.",
        epilog="commands:\n" + "\n".join(f"  {name:<8} {text}" for name, text in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_version(parser)
    parser.add_argument("command", choices=COMMANDS, metavar="command", help="one of those below; each has --help")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…", help="see rvq COMMAND --help")
    parser.parse_args(given)
    # An option before the command: there is none that parses and comes here, but argparse cannot know that.
    parser.error("give the command first")


def execute(prog: str, name: str, arguments: Sequence[str] | None = None) -> int:
    """Runs the command `name` under the name `prog`. Whatever is raised on purpose ends as a line and an exit code."""
    try:
        _fill_descriptors()
        module = import_module(f"rvq.cli.{name}")
        parser = _Parser(prog=prog, description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.")
        module.add_arguments(parser)
        add_bus_arguments(parser)
        _add_version(parser)
        args = _parse(parser, arguments)
        args.prog = prog
        _check_settings(args)
        code: int = module.run(args)
        sys.stdout and sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return FAULT
    except BrokenPipeError:
        _forget_output()
        return FAULT
    except (RvqError, WrongUse, OSError) as error:
        say(f"{prog}: {error}")
        return exit_code_of(error)


class _Parser(argparse.ArgumentParser):
    """Names as required only what is. Where options may stand anywhere, argparse names arguments of which there may be
    none, too."""

    def error(self, message: str) -> NoReturn:
        if "required:" in message:
            for action in self._actions:
                if action.nargs == "*":
                    message = message.replace(f", {action.metavar}", "")
        super().error(message)


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Intermixed, so that `rvq-send work --json '{}'` may have its options anywhere.

    Argparse stumbles when it is interrupted in there, so Ctrl-C waits for the moment that this takes.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return parser.parse_intermixed_args(arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def exit_code_of(error: Exception) -> int:
    """Whose fault it is: the user's, or that of something on the way."""
    return WRONG_USE if isinstance(error, (WrongUse, BadArgument, BadLabel, BadMessage, MessageTooLarge)) else FAULT


def reachable_bus(args: argparse.Namespace) -> Bus:
    """The bus that the options name; WrongUse if its interface, a peer or its key does not exist or cannot be used."""
    from rvq.transport.multicast import interface_of
    from rvq.transport.names import check_seeds

    bus = bus_from(args)
    try:
        check_seeds(bus.seeds, interface_of(bus))
        if bus.key is not None:
            from rvq.aio.sealing import keys_of

            keys_of(bus)
    except BusError as error:
        raise WrongUse(str(error)) from error
    return bus


def _check_settings(args: argparse.Namespace) -> None:
    try:
        bus_from(args)
    except BusError as error:
        raise WrongUse(str(error)) from error


def _fill_descriptors() -> None:
    """Where standard input, output or error was closed (`2>&-`), a socket would get its number, and uvloop aborts."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)


def _forget_output() -> None:
    """Nobody reads standard output any more: keep the interpreter from complaining when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Version(argparse.Action):
    """As argparse's own, but looks the version up only when asked: that takes longer than all the rest."""

    def __init__(self, option_strings: Sequence[str], dest: str, **_: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="say the version and leave")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"rvq {version('rvq')}")
        parser.exit()


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--version", action=_Version)
