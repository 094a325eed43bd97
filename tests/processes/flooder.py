"""A stranger on the bus: `python -m tests.processes.flooder work --port N --kinds noise,naks --seconds 3 --log F`.

Real datagrams on loopback, at the rate that is asked for or as fast as it goes. He listens to the control address, so
he knows who is there. His datagrams are made ahead and again now and then, so that making them does not slow him down.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import cycle
from random import Random

import rvq
from rvq.core.machine import Route
from rvq.sim.floods import Floods
from rvq.transport import multicast

AHEAD = 1500
"""Datagrams that are made at once."""
AHEAD_S = 0.1
"""And for so long at most."""
AGAIN_S = 1.0
"""Between two such times."""
AHEAD_BYTES = 4_000_000
LISTEN_S = 0.5
"""Before he begins he listens, for two heartbeats."""
BURST = 50
"""Sent in one go; then he looks at the clock."""


class Flooder:
    """So many sockets, in turn."""

    def __init__(self, bus: rvq.Bus, label: str, kinds: list[str], sockets: int, seed: int) -> None:
        interface = multicast.resolve_interface(bus.interface)
        self._sockets = [multicast.open_unicast(bus, interface) for _ in range(sockets)]
        self._ear = multicast.open_multicast(bus, interface, bus.control_address(label))
        self._floods = Floods(label, Random(seed))
        self._kinds = kinds or list(self._floods.kinds)
        self._random = Random(seed)
        self._where = {
            Route.DATA: (bus.data_address(label), bus.port),
            Route.CONTROL: (bus.control_address(label), bus.port),
            Route.ABOUT: (bus.directory_address, bus.port),
        }
        self._own = {sock.getsockname() for sock in self._sockets}
        self.said = self.failed = 0

    def listen(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        self._ear.settimeout(0.05)
        while time.monotonic() < until:
            self._hear()

    def _hear(self) -> None:
        try:
            datagram, source = self._ear.recvfrom(65_536)
        except (BlockingIOError, TimeoutError):
            return
        if source not in self._own:
            self._floods.hear(datagram, source)

    def _prepare(self) -> list[tuple[object, bytes]]:
        made: list[tuple[object, bytes]] = []
        size, until = 0, time.monotonic() + AHEAD_S
        while len(made) < AHEAD and size < AHEAD_BYTES and (not made or time.monotonic() < until):
            target, datagram = self._floods.kinds[self._random.choice(self._kinds)]()
            made.append((self._where.get(target, target), datagram))  # type: ignore[call-overload]
            size += len(datagram)
        return made

    def flood(self, rate: float, seconds: float) -> float:
        """How many datagrams a second it was."""
        began = time.monotonic()
        sockets = cycle(self._sockets)
        made = self._prepare()
        place, again_at = 0, began + AGAIN_S
        while (now := time.monotonic()) < began + seconds:
            if now > again_at:
                self.listen(0.0)
                self._ear.setblocking(False)
                for _ in range(20):
                    self._hear()
                made, again_at = self._prepare(), time.monotonic() + AGAIN_S
            due = int((now - began) * rate) - self.said
            for _ in range(min(due, BURST)):
                address, datagram = made[place % len(made)]
                place += 1
                self.said += 1
                try:
                    next(sockets).sendto(datagram, address)
                except OSError:
                    self.failed += 1
            if due <= 0:
                time.sleep(0.0005)
        return self.said / (time.monotonic() - began)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("label")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--kinds", default="", help="all of them, unless named")
    parser.add_argument("--rate", type=float, default=50_000.0, help="datagrams per second")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--sockets", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args(arguments)
    kinds = [kind for kind in args.kinds.split(",") if kind]
    flooder = Flooder(rvq.Bus(port=args.port), args.label, kinds, args.sockets, args.seed)
    flooder.listen(LISTEN_S)
    rate = flooder.flood(args.rate, args.seconds)
    print(f"{flooder.said} datagrams, {rate:.0f}/s, {flooder.failed} not sent", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, KeyboardInterrupt) as error:
        sys.exit(f"flooder: {error}")
