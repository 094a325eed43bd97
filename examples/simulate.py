"""Your handler under crashes, loss and a split network, in virtual time: python examples/simulate.py [SEED]

The question is always the same: what if a message is handled by one that dies before it can say so, and then by
another? The handler here asks a store whether a charge was made before, so it is made once.
"""

import sys

from rvq.sim import Link, World


class Shop:
    """The outside world: what it has charged stays charged, whoever crashes."""

    def __init__(self) -> None:
        self.charged: set[int] = set()
        self.asked_again = 0

    def charge(self, message) -> float:
        """The handler: called when the handling of a message starts. Returns how long it takes."""
        order = message.body["order"]
        if order in self.charged:
            self.asked_again += 1
        self.charged.add(order)
        return 0.02


def main(seed: int) -> None:
    shop = Shop()
    world = World(seed, link=Link(loss=0.05, duplicate=0.02))
    world.sender("orders", bodies=[{"order": number} for number in range(500)], rate=100)
    one, two, three = (world.receiver("orders", handler=shop.charge) for _ in range(3))
    world.at(1.5, one.crash)
    world.at(2.0, lambda: world.pause(two, for_s=2.0))
    world.at(2.5, lambda: world.receiver("orders", handler=shop.charge))
    world.at(4.5, three.leave)
    world.run()
    world.verdict().raise_if_bad()
    print(f"{len(shop.charged)} orders charged, {shop.asked_again} asked for again, {world.now:.1f} s of virtual time")
    assert len(shop.charged) == 500


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
