"""One key, one receiver, in order: bookings of many accounts at three receivers. python examples/keyed.py

Everything in one process, so that it runs as it is; your senders and receivers would be programs of their own.
"""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack

import rvq

ACCOUNTS, BOOKINGS = 20, 1000


async def book(receiver: rvq.Receiver, seen: dict[str, list[int]]) -> None:
    async for message in receiver:
        seen[message.key].append(message.body)


async def main() -> None:
    shares: list[dict[str, list[int]]] = [defaultdict(list) for _ in range(3)]
    async with AsyncExitStack() as stack:
        receivers = [await stack.enter_async_context(rvq.Receiver("bookings")) for _ in shares]
        booking = [asyncio.create_task(book(*pair)) for pair in zip(receivers, shares, strict=True)]
        async with rvq.Sender("bookings") as sender:
            for number in range(BOOKINGS):
                await sender.send(number, key=f"account-{number % ACCOUNTS}")
        for receiver in receivers:
            receiver.leave()
        await asyncio.gather(*booking)
    for share in shares:
        print(f"{len(share)} accounts, {sum(map(len, share.values()))} bookings")
        assert all(numbers == sorted(numbers) for numbers in share.values())
    print("every account at one receiver, and in order")
    assert sum(len(share) for share in shares) == ACCOUNTS


asyncio.run(main())
