"""Sent, done there, and only then acknowledged here; with a sender that answers as told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rvq.cli.letters import Found
from rvq.cli.redriving import AT_ONCE, TICK_S, Redriving
from rvq.dead import DeadLetter
from rvq.errors import BadMessage, NotDelivered
from tests.cli.fakes import FakeReceiver, FakeSender, overheard


class Scene:
    """Letters of these bodies, and a sender."""

    def __init__(self, sender: FakeSender, bodies: Any, linger: float = 0.05) -> None:
        self.sender = sender
        words, self.stream = overheard()
        self._receiver = FakeReceiver(bodies)
        self._letters = [
            Found(cast(Any, message), letter(message.body, f"k{message.body}")) for message in self._receiver.messages
        ]
        self.redriving = Redriving(cast(Any, sender), words, prog="rvq dead", linger=linger)

    async def run(self) -> None:
        await self.redriving.run(self._letters)

    @property
    def acknowledged(self) -> list[Any]:
        return [message.body for message in self._receiver.messages if message.outcome == "done"]


def letter(body: Any, key: str) -> DeadLetter:
    return DeadLetter("id", "work", "default", body, key, {"trace": body}, "no", "", 5, 1.0, 2.0, "aa", "bb")


async def test_body_key_and_headers_are_sent_again() -> None:
    scene = Scene(FakeSender(), [1, 2])
    await scene.run()
    assert scene.sender.sent == [("k1", [1]), ("k2", [2])]
    assert scene.sender.options == [{"headers": {"trace": 1}}, {"headers": {"trace": 2}}]
    assert scene.acknowledged == [1, 2] and scene.redriving.done == 2


async def test_only_what_is_done_is_acknowledged() -> None:
    class Stuck(FakeSender):
        def is_done(self, number: int) -> bool:
            return number == 2

    scene = Scene(Stuck(done_per_flush=0), [1, 2, 3], linger=0.3)
    with pytest.raises(NotDelivered):
        await scene.run()
    assert scene.acknowledged == [2] and scene.redriving.done == 1


async def test_it_goes_on_for_as_long_as_something_is_done() -> None:
    scene = Scene(FakeSender(done_per_flush=1), range(30), linger=0.01)
    await scene.run()
    assert scene.acknowledged == [*range(30)]


async def test_linger_begins_again_with_whatever_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("rvq.cli.redriving.time", SimpleNamespace(monotonic=lambda: clock.now))

    class EverySecond(FakeSender):
        flushes = 0

        async def flush(self, timeout: float | None = None) -> None:
            EverySecond.flushes += 1
            clock.now += timeout or 0.0
            self.undone -= EverySecond.flushes % 2 == 0
            if self.undone:
                raise NotDelivered(self.undone)

    scene = Scene(EverySecond(), range(10), linger=2.5 * TICK_S)
    await scene.run()
    assert scene.acknowledged == [*range(10)]


async def test_no_more_are_under_way_than_may_be_repeated() -> None:
    class Watched(FakeSender):
        most = 0

        async def flush(self, timeout: float | None = None) -> None:
            Watched.most = max(Watched.most, self.undone)
            await super().flush(timeout)

    scene = Scene(Watched(), range(3 * AT_ONCE + 1))
    await scene.run()
    assert Watched.most == AT_ONCE and len(scene.acknowledged) == 3 * AT_ONCE + 1


async def test_one_that_cannot_be_sent_is_said_and_left() -> None:
    class Picky(FakeSender):
        async def send(self, body: Any, **options: Any) -> None:
            if body == 2:
                raise BadMessage("two is odd")
            await super().send(body, **options)

    scene = Scene(Picky(), [1, 2, 3])
    await scene.run()
    assert scene.acknowledged == [1, 3] and scene.redriving.done == 2
    assert scene.stream.getvalue() == "rvq dead: id cannot be sent again: two is odd\n"


async def test_why_it_waits_is_said_once() -> None:
    scene = Scene(FakeSender(done_per_flush=0, waiting_for="nobody listens"), [1], linger=1.0)
    with pytest.raises(NotDelivered):
        await scene.run()
    assert scene.stream.getvalue() == "rvq dead: waiting: nobody listens\n"
