"""`rvq drain`: a receiver finishes what is its own, and leaves. Owns the options."""

from __future__ import annotations

import argparse

from rvq.cli.ordering import add_id, carry_out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_id(parser)


def run(args: argparse.Namespace) -> int:
    """0 if it is leaving."""
    from rvq.aio import admin
    from rvq.cli.command import reachable_bus

    bus, id = reachable_bus(args), admin.check_id(args.id)
    return carry_out(args.prog, admin.drain(id, label=args.label, bus=bus), "leaving")
