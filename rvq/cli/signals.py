"""SIGINT and SIGTERM as calls on the event loop. Owns the handlers for as long as a command runs there."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def calling_on_signals(call: Callable[[], object]) -> Iterator[None]:
    """Each of the two signals is a call of `call`, and nothing else."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
