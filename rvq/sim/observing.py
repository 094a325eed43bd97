"""An observer in a world: it looks on, and nobody fares otherwise for it. Owns what it listens to."""

from __future__ import annotations

from typing import Any

from rvq.core.machine import Route
from rvq.core.observer import ObserverMachine
from rvq.sim.clock import LocalClock
from rvq.sim.network import BUFFER_BYTES
from rvq.sim.process import Process, Surroundings

NO_LABEL = ""
"""It belongs to none."""


class ObserverProcess(Process):
    """Hears the directory and the control addresses of the labels found there. Its luck is its own."""

    machine: ObserverMachine

    def __init__(
        self,
        around: Surroundings,
        name: str,
        id: int,
        local: LocalClock,
        machine: ObserverMachine,
        *,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        luck = around.random
        super().__init__(around, name, id, NO_LABEL, local, hears_data=False, buffer_bytes=buffer_bytes, luck=luck)
        self.machine = machine
        self._follows = -1
        self._put_on_bus()
        around.network.join(name, NO_LABEL, Route.ABOUT)
        self._tell(f"looks on (clock rate {local.rate:.3f})")
        self._do(lambda: None)

    @property
    def _routes(self) -> tuple[Route, ...]:
        return (Route.ABOUT,)

    def _work(self) -> None:
        if self.fanned is not None and self.machine.follows != self._follows:
            self._follows = self.machine.follows
            self.fanned.listen(self.machine.labels)
        for label in self.machine.labels:
            self._around.network.join(self.name, label, Route.CONTROL)

    def snapshot(self) -> dict[str, Any]:
        """What it sees now."""
        return self.machine.snapshot(self.local_now)
