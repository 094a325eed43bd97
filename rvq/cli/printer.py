"""Messages to lines, a batch at a time. Owns the order of things: written, and only then the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import rvq
from rvq.cli.output import Output
from rvq.cli.quiet import Quiet

BATCH = 5_000
"""Messages that are written in one go at most: as many as wait, and none is waited for."""


class Printer:
    """Writes every message of an auto-acknowledging receiver to `output`, up to `count` of them."""

    def __init__(
        self,
        receiver: rvq.Receiver,
        output: Output,
        render: Callable[[Sequence[rvq.Message]], bytes],
        quiet: Quiet,
        count: int | None,
    ) -> None:
        self._receiver = receiver
        self._output = output
        self._render = render
        self._quiet = quiet
        self._count = count

    async def run(self) -> None:
        """Until the receiver has left, or enough is printed."""
        left = self._count
        self._quiet.begin()
        while left is None or left > 0:
            most = BATCH if left is None else min(BATCH, left)
            async for batch in self._receiver.batches(max=most):
                self._quiet.end()
                await self._output.write(self._render(batch))
                self._quiet.begin()
                if left is not None:
                    left -= len(batch)
                    if left < most:
                        break
            else:
                return
