"""Prints the jobs that are its own to handle. Start as many as you like: python examples/receiver.py

Ctrl-C and SIGTERM: it finishes what it has, and leaves.
"""

import asyncio
import signal

import rvq


async def main() -> None:
    async with rvq.Receiver("work") as receiver:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, receiver.leave)
        print("listening", flush=True)
        async for message in receiver:  # done when the next one is asked for
            print(message.body, flush=True)


asyncio.run(main())
