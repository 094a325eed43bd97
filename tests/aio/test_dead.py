"""A receiver's dead letters: sent as soon as anybody listens, waited for at the end, never lost in silence."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rvq
from rvq.aio import dead as dead_module
from rvq.aio.dead import DeadLetters
from rvq.limits import FRAME_BYTES_MIN, LABEL_BYTES_MAX, MESSAGE_BYTES_MAX
from tests.aio.ends import open_sockets, soon, take, taken, until
from tests.test_dead import LETTER


def letter(number: int, **facts: Any) -> rvq.DeadLetter:
    return rvq.DeadLetter.from_body(LETTER.as_body() | {"id": f"x-{number}"} | facts)


async def test_a_rejected_message_is_a_dead_letter_and_done_for_its_sender(bus: rvq.Bus) -> None:
    async with (
        rvq.Receiver("work.dead", ack="manual", bus=bus) as dead,
        rvq.Sender("work", bus=bus) as sender,
        rvq.Receiver("work", ack="manual", bus=bus) as receiver,
    ):
        await sender.send(b"raw", key=b"k")
        (message,) = await take(receiver, 1)
        message.reject("no such thing")
        message.reject("again")
        await soon(sender.flush())
        (found,) = await taken(dead, 1)
        assert receiver.stats.dead == 1
        assert receiver.dead_letters.undone <= 1
        told = rvq.DeadLetter.from_body(found.body)
        assert (told.body, told.key, told.error, told.traceback) == (b"raw", b"k", "no such thing", "")
        assert (told.attempts, told.first_owner) == (1, f"{receiver.id:016x}")


async def test_nothing_is_opened_before_the_first(bus: rvq.Bus) -> None:
    before = open_sockets()
    letters = DeadLetters("work", bus)
    assert letters.has_room
    await letters.aclose()
    assert open_sockets() == before


async def test_they_wait_for_somebody_to_listen(bus: rvq.Bus) -> None:
    letters = DeadLetters("work", bus)
    for number in range(3):
        letters.bury(letter(number))
    assert letters.undone == 3
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead:
        assert [found.body["id"] for found in await taken(dead, 3)] == ["x-0", "x-1", "x-2"]
        closing = asyncio.create_task(letters.aclose())
        await soon(closing)
    assert letters.left == []


async def test_one_that_closes_right_after_the_first_still_finds_who_listens(bus: rvq.Bus) -> None:
    """Its sender has seen no table by then."""
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead:
        await until(lambda: dead.table is not None)
        letters = DeadLetters("work", bus)
        letters.bury(letter(1))
        closing = asyncio.create_task(letters.aclose())
        (found,) = await taken(dead, 1)
        await soon(closing)
    assert (found.body["id"], letters.left) == ("x-1", [])


async def test_those_that_nobody_takes_are_named_at_the_end(bus: rvq.Bus, caplog: pytest.LogCaptureFixture) -> None:
    letters = DeadLetters("work", bus)
    for number in range(12):
        letters.bury(letter(number))
    await soon(letters.aclose())
    await soon(letters.aclose())
    assert letters.left == [f"x-{number}" for number in range(12)]
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert said == (
        "12 dead letters end with this process, since nobody took them from work.dead: "
        + ", ".join(f"x-{number}" for number in range(10))
        + ", …"
    )


async def test_those_who_only_looked_are_not_waited_for(bus: rvq.Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    lingered: list[float] = []

    async def close(sender: rvq.Sender) -> None:
        lingered.append(sender.linger)

    monkeypatch.setattr(rvq.Sender, "aclose", close)
    letters = DeadLetters("work", bus)
    letters.bury(letter(1))
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as looking:
        await take(looking, 1)
    await soon(letters.aclose())
    assert lingered == [0.0]
    assert letters.left == ["x-1"]


async def test_who_is_there_and_takes_nothing_is_waited_for_with_words(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_module, "LINGER_S", 0.1)
    letters = DeadLetters("work", bus)
    letters.bury(letter(1))
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as looking:
        await take(looking, 1)
        await soon(letters.aclose())
    assert "waiting up to 0.1 s for those on work.dead to take 1 dead letter" in caplog.text
    assert letters.left == ["x-1"]


async def test_they_are_named_when_closing_is_cancelled_too(bus: rvq.Bus, caplog: pytest.LogCaptureFixture) -> None:
    letters = DeadLetters("work", bus)
    letters.bury(letter(1))
    closing = asyncio.create_task(letters.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(closing)
    assert "1 dead letter ends with this process, since nobody took it from work.dead: x-1" in caplog.text


async def test_only_the_ids_of_those_that_wait_are_kept(bus: rvq.Bus) -> None:
    letters = DeadLetters("work", bus)
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead:
        for number in range(50):
            letters.bury(letter(number))
            await taken(dead, 1)
        await until(lambda: letters.undone <= 1)
        letters.bury(letter(50))
        assert len(letters._ids) == letters.undone <= 2
        await taken(dead, 1)
        await soon(letters.aclose())


async def test_one_that_does_not_fit_is_lost_with_words(bus: rvq.Bus, caplog: pytest.LogCaptureFixture) -> None:
    letters = DeadLetters("work", bus, window=FRAME_BYTES_MIN)
    number = 0
    while letters.has_room:
        letters.bury(letter(number))
        number += 1
    letters.bury(letter(999))
    assert "dead letter x-999 is lost: nobody takes those of work, and no more fit" in caplog.text
    await soon(letters.aclose())
    assert len(letters.left) == number


def nested(depth: int) -> Any:
    body: Any = 1
    for _ in range(depth):
        body = [body]
    return body


@pytest.mark.parametrize(
    "facts", [{"body": b"x" * MESSAGE_BYTES_MAX}, {"headers": {"x": "y" * MESSAGE_BYTES_MAX}}, {"body": nested(2000)}]
)
async def test_one_that_is_too_large_or_too_deep_goes_without_its_body(bus: rvq.Bus, facts: dict[str, Any]) -> None:
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead:
        letters = DeadLetters("work", bus)
        letters.bury(letter(1, **facts))
        (found,) = await taken(dead, 1)
        told = rvq.DeadLetter.from_body(found.body)
        assert (told.id, told.body, told.headers) == ("x-1", None, None)
        assert told.error.startswith("ValueError: no (its body was too large: ")
        await soon(letters.aclose())


async def test_a_dead_letter_that_is_rejected_is_dropped_with_words(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    letters = DeadLetters("work.dead", bus)
    letters.bury(letter(1))
    assert (letters.undone, letters.has_room) == (0, True)
    assert "dead letter x-1 was rejected in turn, and is dropped" in caplog.text
    await letters.aclose()


async def test_a_label_that_is_too_long_for_dead_letters_is_said(
    bus: rvq.Bus, caplog: pytest.LogCaptureFixture
) -> None:
    letters = DeadLetters("x" * LABEL_BYTES_MAX, bus)
    letters.bury(letter(1))
    assert "dead letter x-1 is lost, since it cannot be sent: label " in caplog.text
    await letters.aclose()


async def test_what_is_rejected_after_the_end_opens_nothing(bus: rvq.Bus) -> None:
    async with rvq.Sender("work", bus=bus, linger=0) as sender:
        async with rvq.Receiver("work", ack="manual", bus=bus) as receiver:
            await sender.send(1)
            (message,) = await take(receiver, 1)
        before = open_sockets()
        message.reject("too late")
        message.retry()
        message.ack()
        assert open_sockets() == before
        async with rvq.Receiver("work", bus=bus) as another:
            assert [found.body for found in await take(another, 1)] == [1]
            another.leave()
            with pytest.raises(StopAsyncIteration):
                await soon(anext(another))
            await soon(sender.flush())


def test_a_receiver_that_leaves_waits_for_them_longer_than_for_a_table() -> None:
    assert rvq.Bus().expiry < dead_module.LINGER_S
