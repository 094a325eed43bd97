"""Sends ten jobs to the label "work", and ends when all of them are done: python examples/sender.py"""

import asyncio

import rvq


async def main() -> None:
    async with rvq.Sender("work") as sender:
        for number in range(10):
            await sender.send({"job": number})
        await sender.send_many({"job": number} for number in range(10, 1000))
    print("all done")


asyncio.run(main())
