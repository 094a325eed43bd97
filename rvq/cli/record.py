"""`rvq record`: labels onto the disk, until it is told to leave. Owns the options and the words."""

from __future__ import annotations

import argparse
import asyncio
from typing import TYPE_CHECKING

from rvq.cli import values
from rvq.cli.command import ALL_DONE, FAULT, WrongUse, reachable_bus
from rvq.cli.measuring import add_metrics, measuring

if TYPE_CHECKING:
    import rvq
    from rvq.aio.recorder import Recorder
    from rvq.bus import Bus
    from rvq.cli.words import Words

GROUP = "journal"
"""Who shares the recording, if nothing else is said."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", help="the journal's folder; made if it is not there")
    parser.add_argument(
        "--label", metavar="L", action="append", type=values.filled, help="what to record; give it once for each label"
    )
    parser.add_argument(
        "--group", metavar="G", default=GROUP, help=f"who shares the recording; another group is another copy ({GROUP})"
    )
    parser.add_argument(
        "--sync",
        metavar="WHEN",
        type=values.sync,
        default="batch",
        help="when what was written is synced: batch (before it is done; nothing can be lost), a time such as 100ms"
        " (done when written; a power cut loses up to so much), never (a power cut loses what the system had not"
        " written) (batch)",
    )
    parser.add_argument("--keep", metavar="T", type=values.span, help="delete whole hours that are older, such as 7d")
    add_metrics(parser)


def run(args: argparse.Namespace) -> int:
    """0 if everything that was ours is on disk."""
    from rvq.aio import run as run_loop
    from rvq.cli.words import Words, saying_warnings
    from rvq.names import check_group, check_label

    if not args.label:
        raise WrongUse("say what to record: --label work, once for each label")
    for label in args.label:
        check_label(label)
    check_group(args.group)
    words = Words()
    with saying_warnings(args.prog, words):
        return run_loop(_record(args, reachable_bus(args), words))


async def _record(args: argparse.Namespace, bus: Bus, words: Words) -> int:
    import rvq
    from rvq.cli.signals import calling_on_signals

    announced = _Announced(args, words)
    recorder = rvq.Recorder(
        args.folder,
        args.label,
        group=args.group,
        bus=bus,
        sync=args.sync,
        keep=args.keep,
        on_table=announced.table,
    )
    announced.id = recorder.id
    stopping = _Stopping(args, recorder, words)
    with calling_on_signals(stopping.on_signal), measuring(args, words, recorder):
        async with recorder:
            leaving = asyncio.ensure_future(recorder.wait())
            await asyncio.wait({leaving, asyncio.ensure_future(stopping.at_once.wait())}, return_when="FIRST_COMPLETED")
            announced.over = True
            if leaving.done():
                leaving.result()
    recorded = sum(stats.acked for stats in recorder.stats.values())
    words.say(f"recorded {recorded} message{'s' * (recorded != 1)} into {args.folder}")
    return FAULT if stopping.at_once.is_set() or recorder.failing else ALL_DONE


class _Announced:
    """Who one is, said again at each change."""

    def __init__(self, args: argparse.Namespace, words: Words) -> None:
        self._args = args
        self._words = words
        self._said: dict[str, str] = {}
        self.id = 0
        self.over = False

    def table(self, label: str, table: rvq.TableView) -> None:
        place = f"index {table.index} of {len(table.members)}" if table.index is not None else "and not in its table"
        group, me = self._args.group, f"{self.id:016x}"[:4]
        text = f"recording {label} (group {group}) into {self._args.folder} as {me}… {place}"
        if self._said.get(label) != text and not self.over:
            self._said[label] = text
            self._words.say(text)


class _Stopping:
    """The first signal leaves in good order, the second at once."""

    def __init__(self, args: argparse.Namespace, recorder: Recorder, words: Words) -> None:
        self._args = args
        self._recorder = recorder
        self._words = words
        self._signals = 0
        self.at_once = asyncio.Event()

    def on_signal(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self.at_once.set()
            return
        self._words.say(f"{self._args.prog}: leaving when what is ours is on disk; once more to leave at once")
        self._recorder.leave()
