"""`--metrics`: what a command counts, for Prometheus. Owns the option, and how long the page is there."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rvq.cli.words import Words

if TYPE_CHECKING:
    from rvq.aio.metrics import End


def add_metrics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics",
        metavar="PORT",
        help="serve counters and gauges for Prometheus at http://127.0.0.1:PORT/metrics; HOST:PORT to serve elsewhere",
    )
    parser.add_argument("--metrics-parts", action="store_true", help="with --metrics: also by lane and by shard")


@contextmanager
def measuring(args: argparse.Namespace, words: Words, *ends: End) -> Iterator[None]:
    """The page is there in this block, if it was asked for."""
    if args.metrics is None:
        yield
        return
    from rvq.aio.metrics import serve

    with serve(args.metrics, *ends, parts=args.metrics_parts) as page:
        words.say(f"{args.prog}: metrics at http://{page.host}:{page.port}/metrics")
        yield
