"""Somebody who gives an order in a world: drain, another weight, a pause and its end. Owns nothing but its end."""

from __future__ import annotations

from rvq.core.asker import AskerMachine
from rvq.sim.clock import LocalClock
from rvq.sim.process import Process, State, Surroundings


class AskerProcess(Process):
    """An asking end. It is gone when it knows what became of its order. Its luck is its own, as a tap's."""

    def __init__(
        self, around: Surroundings, name: str, label: str, local: LocalClock, asker: AskerMachine, what: str
    ) -> None:
        super().__init__(around, name, asker.id, label, local, hears_data=False, luck=around.random)
        self.machine = asker
        self.asker = asker
        self._put_on_bus()
        self._tell(f"asks {label!r}: {what}")
        self._do(lambda: None)

    def _work(self) -> None:
        if self.asker.over:
            self._tell(self.asker.fault or f"{len(self.asker.ordered)} have done as asked")
            self._end(State.ENDED)
