"""`rvq pause`: a group starts nothing more. Owns the options."""

from __future__ import annotations

import argparse

from rvq.cli.ordering import add_group, carry_out


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group(parser)


def run(args: argparse.Namespace) -> int:
    """0 if all of the group start nothing more."""
    from rvq.aio import admin
    from rvq.cli.command import reachable_bus

    return carry_out(args.prog, admin.pause(args.label, args.group, bus=reachable_bus(args)), "paused")
