"""`rvq weight`: a receiver gets another share of the work. Owns the options."""

from __future__ import annotations

import argparse

from rvq.cli import values
from rvq.cli.ordering import add_id, carry_out, label_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)
    parser.add_argument("weight", metavar="N", type=values.weight, help="shares to take, 1 to 64")


def run(args: argparse.Namespace) -> int:
    """0 if it takes that share from the next table on."""
    from rvq.aio import admin
    from rvq.cli.command import reachable_bus

    bus = reachable_bus(args)
    id = admin.check_id(args.id)
    order = admin.weight(id, args.weight, label=label_of(args, bus, id), bus=bus)
    return carry_out(args.prog, order, f"weight {args.weight}")
