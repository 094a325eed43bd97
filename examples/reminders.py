"""Messages for later: python examples/reminders.py

A reminder is sent now and handled when it is due, by whichever of the two workers has it then. One that nobody came to
in time is dropped (`ttl`), and one that cannot wait goes first (`urgent`). A sender that has sent something for later
stays until it is done.
"""

import asyncio
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import rvq


async def remind(message: rvq.Message) -> None:
    early = message.due_at is not None and time.time() < message.due_at
    print(f"{'too early' if early else 'reminder'}: {message.body}", flush=True)


async def work() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await rvq.consume("reminders", remind, stop=stop)


async def main() -> None:
    workers = [subprocess.Popen([sys.executable, __file__, "work"]) for _ in range(2)]
    async with rvq.Sender("reminders") as sender:
        while not sender.tables:  # a time to live counts from when a message leaves: once there are receivers
            await asyncio.sleep(0.05)
        await sender.send("tea is ready", delay=2.0)
        await sender.send("the meeting begins", due=datetime.now(UTC) + timedelta(seconds=3))
        await sender.send("lunch is over", delay=1.0, ttl=0.5)  # it is over before it is due, so it is dropped
        await sender.send("the house is on fire", urgent=True)
        print("sent", flush=True)
    for worker in workers:
        worker.terminate()
        worker.wait()
    print("all done")


asyncio.run(work() if sys.argv[1:] == ["work"] else main())
