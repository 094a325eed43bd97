"""`rvq drain`: a receiver finishes what is its own, and leaves. Owns the options."""

from __future__ import annotations

import argparse

from rvq.cli.ordering import add_id, carry_out, label_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)


def run(args: argparse.Namespace) -> int:
    """0 if it is leaving."""
    from rvq.aio import admin
    from rvq.cli.command import reachable_bus

    bus = reachable_bus(args)
    id = admin.check_id(args.id)
    return carry_out(args.prog, admin.drain(id, label=label_of(args, bus, id), bus=bus), "leaving")
