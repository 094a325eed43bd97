"""Signals as calls."""

from __future__ import annotations

import asyncio
import signal

import pytest

from rvq.cli.signals import calling_on_signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_is_a_call_and_afterwards_it_is_not(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    called = asyncio.Event()
    with calling_on_signals(called.set):
        signal.raise_signal(number)
        await asyncio.wait_for(called.wait(), 5)
    assert signal.getsignal(number) in (before, signal.default_int_handler, signal.SIG_DFL)
