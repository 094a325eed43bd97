"""A brisk bus, and a look at what each test leaves behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator

import pytest

from rvq.bus import Bus
from tests.aio.ends import open_sockets


@pytest.fixture
def bus(port: int) -> Bus:
    """This test's alone. First tables come twice as fast as by default; nobody is taken for dead any sooner."""
    return Bus(port=port, heartbeat=0.1, settle=0.02, orphan_for=2.0)


@pytest.fixture(autouse=True)
async def _nothing_is_left_behind() -> AsyncIterator[None]:
    sockets, tasks = open_sockets(), asyncio.all_tasks()
    yield
    gc.collect()
    left = {task for task in asyncio.all_tasks() - tasks if task is not asyncio.current_task()}
    assert not left, f"tasks without an owner: {left}"
    assert open_sockets() <= sockets, "sockets without an owner"
