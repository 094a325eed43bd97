"""The options that all commands share: which bus. Owns their names and help, and makes the Bus of them."""

from __future__ import annotations

import argparse

from rvq.bus import DEFAULT_PORT, Bus
from rvq.ranges import DEFAULT_ADDRESS, DEFAULT_ADDRESS_6


def add_bus_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds --interface, --port, --address, --key-file and --peers. What is left out comes from the environment."""
    bus = parser.add_argument_group("bus")
    for option, metavar, text in (
        ("--interface", "NAME", "name or address of the interface (RVQ_INTERFACE; default: lo)"),
        ("--port", "N", f"UDP port; another port is another bus (RVQ_PORT; default: {DEFAULT_PORT})"),
        (
            "--address",
            "RANGE",
            f"multicast range of the labels (RVQ_ADDRESS; default: {DEFAULT_ADDRESS}; IPv6 has {DEFAULT_ADDRESS_6})",
        ),
        ("--key-file", "FILE", "key file of a sealed bus (RVQ_KEY_FILE; see rvq key)"),
        ("--peers", "HOSTS", "no multicast: find the others at HOST[:PORT],… and send to each (RVQ_PEERS)"),
    ):
        bus.add_argument(option, metavar=metavar, help=text)


def bus_from(args: argparse.Namespace) -> Bus:
    """The bus that the options and the environment name. BusError, which is wrong use, if there is no such bus."""
    options = {"interface": args.interface, "port": args.port, "address": args.address, "key": args.key_file}
    options["peers"] = args.peers
    return Bus.from_env(**{name: value for name, value in options.items() if value is not None})
