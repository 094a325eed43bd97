"""One at a time."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

from rvq.cli.turn import turn


def nobody_waits() -> None:
    raise AssertionError("there was nobody to wait for")


async def test_names_do_not_get_in_each_others_way(port: int) -> None:
    async with turn(f"{port} a", nobody_waits), turn(f"{port} b", nobody_waits):
        pass
    async with turn(f"{port} a", nobody_waits):
        pass


async def test_many_come_one_after_another(port: int) -> None:
    inside, most, came, waited = 0, 0, 0, 0

    def on_wait() -> None:
        nonlocal waited
        waited += 1

    async def come() -> None:
        nonlocal inside, most, came
        async with turn(f"{port}", on_wait):
            inside, came = inside + 1, came + 1
            most = max(most, inside)
            await asyncio.sleep(0)  # where others would come in
            inside -= 1

    await asyncio.wait_for(asyncio.gather(*(come() for _ in range(20))), 20)
    assert (came, most) == (20, 1) and waited >= 19


async def test_the_turn_of_one_that_was_killed_is_over(port: int) -> None:
    script = (
        "import asyncio, rvq.cli.turn as t\n"
        "async def main():\n"
        f"    async with t.turn('{port}', print):\n"
        "        print('mine', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == b"mine\n"
        async with asyncio.timeout(20), turn(f"{port}", lambda: holder.send_signal(signal.SIGKILL)):
            pass
    assert holder.returncode == -signal.SIGKILL


async def test_one_that_waits_can_be_cancelled(port: int) -> None:
    waiting = asyncio.Event()

    async def come() -> None:
        async with turn(f"{port}", waiting.set):
            raise AssertionError("it was not its turn")

    async with turn(f"{port}", nobody_waits):
        task = asyncio.create_task(come())
        await waiting.wait()
        task.cancel()
        assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
