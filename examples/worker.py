"""A worker that says itself what became of each message: python examples/worker.py

What fails for now is tried again, later and later; what can never work is rejected; the rest is acknowledged. Several
messages are in hand at once, each in a task of its own.
"""

import asyncio
import signal

import rvq

ATTEMPTS = 3
AT_ONCE = 8


class NotNow(Exception):
    """It may work later."""


async def handle(message: rvq.Message) -> None:
    """Your work. This one fails at every tenth job, the first time."""
    job = message.body["job"]
    if job % 10 == 0 and message.attempt == 1:
        raise NotNow
    await asyncio.sleep(0.001)
    print(f"handled {job}", flush=True)


async def settle(message: rvq.Message, free: asyncio.Semaphore) -> None:
    try:
        await handle(message)
    except NotNow:
        if message.attempt < ATTEMPTS:
            message.retry(delay=0.1 * 2**message.attempt)
        else:
            message.reject(f"failed {ATTEMPTS} times")
    except (KeyError, TypeError) as error:
        message.reject(f"not a job: {error!r}")
    else:
        message.ack()
    finally:
        free.release()


async def main() -> None:
    free = asyncio.Semaphore(AT_ONCE)
    async with rvq.Receiver("work", ack="manual") as receiver, asyncio.TaskGroup() as tasks:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, receiver.leave)
        print("listening", flush=True)
        async for message in receiver:
            await free.acquire()
            tasks.create_task(settle(message, free))
    stats = receiver.stats
    print(f"acked {stats.acked}, retried {stats.retried}, rejected {stats.dead}")


asyncio.run(main())
