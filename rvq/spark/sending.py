"""A batch onto the bus: what was done before is left out, the rest is sent and waited for. Owns the order.

Only one process sends a batch, after all of its tasks have succeeded: what a failed, killed or doubled task computed
was never sent, so nothing of it can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AsyncExitStack
from itertools import islice

from rvq.aio import run
from rvq.aio.sender import Sender
from rvq.bus import Bus
from rvq.errors import NotDelivered
from rvq.spark.outgoing import AGAIN_HEADER, Outgoing
from rvq.spark.sent import ABOUT, ALL, DONE, Forgetful, SentFile


def send_batch(
    messages: Iterable[Outgoing],
    sent: SentFile | Forgetful,
    *,
    topic: str | None,
    bus: Bus,
    window: int,
    linger: float,
) -> int:
    """Sends what is left of a batch, `window` messages at a time, and says how many that were. NotDelivered if the
    receivers are not done with them in `linger` seconds without progress: Spark may then try the batch again."""
    if sent.is_complete:
        return 0
    count = run(_send(messages, sent, topic, bus, window, linger))
    sent.write(ALL)
    return count


async def _send(
    messages: Iterable[Outgoing],
    sent: SentFile | Forgetful,
    topic: str | None,
    bus: Bus,
    window: int,
    linger: float,
) -> int:
    count = 0
    senders: dict[str, Sender] = {}
    async with AsyncExitStack() as stack:
        left = left_out(messages, sent)
        while portion := list(islice(left, window)):
            again = +sent.about
            sent.write(ABOUT, [message.digest for message in portion])
            for message in portion:
                label = message.topic or topic
                assert label is not None
                if label not in senders:
                    senders[label] = await stack.enter_async_context(Sender(label, bus=bus, linger=linger))
                await _send_one(senders[label], message, again)
            for sender in senders.values():
                await _flush(sender, linger)
            sent.write(DONE, [message.digest for message in portion])
            count += len(portion)
    return count


def left_out(messages: Iterable[Outgoing], sent: SentFile | Forgetful) -> Iterator[Outgoing]:
    """Without those that are done. Of messages that are all alike, as many as were done."""
    done = +sent.done
    for message in messages:
        if done[message.digest] > 0:
            done[message.digest] -= 1
        else:
            yield message


async def _send_one(sender: Sender, message: Outgoing, again: dict[int, int]) -> None:
    headers = message.headers
    if again.get(message.digest, 0) > 0:
        again[message.digest] -= 1
        headers = (headers or {}) | {AGAIN_HEADER: True}
    await sender.send(message.body, key=message.key, headers=headers)


async def _flush(sender: Sender, linger: float) -> None:
    """Waits as long as there is progress."""
    while True:
        before = sender.undone
        try:
            return await sender.flush(linger)
        except NotDelivered:
            if sender.undone >= before:
                raise
