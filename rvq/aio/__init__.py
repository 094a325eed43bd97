"""Senders and receivers on asyncio: sockets and one timer drive the machines of `rvq.core`."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, on uvloop where it is installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:  # a platform that it does not support
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
