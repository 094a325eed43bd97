"""One thread in which an event loop has blocking steps done. Owns the rule that a step is never left behind running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class StepThread:
    """Steps run one after the other, in the order of asking."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(self, step: Callable[[], Result], hurry: Callable[[], object] | None = None) -> Result:
        """What the step returns or raises.

        A cancelled caller first waits until the step has ended, so that nobody works behind its back on what it is
        about to clean up. `hurry` is called then: it asks a step that may take long to give up.
        """
        future = asyncio.wrap_future(self._executor.submit(step))
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            if hurry is not None:
                hurry()
            await _ended(future)
            raise
        return future.result()

    def end(self) -> None:
        """No more steps. Those that were asked for still run."""
        self._executor.shutdown(wait=False)


async def _ended(future: asyncio.Future[Result]) -> None:
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError:
            continue  # cancelled again; the first cancellation is raised when the step has ended
    if not future.cancelled():
        future.exception()  # looked at: the cancellation is what the caller gets
