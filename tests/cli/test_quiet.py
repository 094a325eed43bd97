"""The timer of --idle."""

from __future__ import annotations

import asyncio

from rvq.cli.quiet import Quiet


async def test_it_calls_after_the_quiet_time() -> None:
    over = asyncio.Event()
    Quiet(0.01, over.set).begin()
    await asyncio.wait_for(over.wait(), 5)


async def test_what_comes_in_between_ends_the_quiet() -> None:
    over, later = asyncio.Event(), asyncio.Event()
    quiet = Quiet(0.01, over.set)
    quiet.begin()
    quiet.end()
    Quiet(0.02, later.set).begin()
    await asyncio.wait_for(later.wait(), 5)
    assert not over.is_set()


async def test_beginning_again_starts_anew() -> None:
    calls: list[int] = []
    later = asyncio.Event()
    quiet = Quiet(0.01, lambda: calls.append(1))
    quiet.begin()
    quiet.begin()
    Quiet(0.03, later.set).begin()
    await asyncio.wait_for(later.wait(), 5)
    assert calls == [1]


def test_without_a_time_it_needs_no_loop_and_never_calls() -> None:
    quiet = Quiet(None, lambda: None)
    quiet.begin()
    quiet.end()
