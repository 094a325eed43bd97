"""A batch is sent once, whatever happened to those who tried before."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from rvq.bus import Bus
from rvq.errors import NotDelivered
from rvq.spark.outgoing import Outgoing
from rvq.spark.sending import left_out, send_batch
from rvq.spark.sent import ABOUT, DONE, Forgetful, SentFile
from tests.spark.listening import Listening


def messages(numbers: Iterable[int]) -> list[Outgoing]:
    return [Outgoing(n, f"k{n % 3}", None, None, n) for n in numbers]


def send(bus: Bus, numbers: Iterable[int], sent: SentFile | Forgetful, linger: float = 10.0) -> int:
    return send_batch(messages(numbers), sent, topic="work", bus=bus, window=30, linger=linger)


def test_a_batch_is_done_when_this_returns_and_is_not_sent_again(bus: Bus, tmp_path: Path) -> None:
    sent = SentFile(tmp_path / "1.sent")
    with Listening(bus) as listening:
        assert send(bus, range(100), sent) == 100
        assert sorted(listening.bodies) == list(range(100))
        assert send(bus, range(100), sent) == 0
        sent.close()
        again = SentFile(tmp_path / "1.sent")
        assert send(bus, range(100), again) == 0
        again.close()
    assert len(listening.messages) == 100
    assert {message.key for message in listening.messages} == {"k0", "k1", "k2"}


def test_what_is_done_is_left_out_and_what_may_be_is_sent_with_a_word(bus: Bus, tmp_path: Path) -> None:
    sent = SentFile(tmp_path / "1.sent")
    sent.write(ABOUT, range(60))
    sent.write(DONE, range(30))
    with Listening(bus) as listening:
        assert send(bus, reversed(range(100)), sent) == 70, "in whatever order"
    assert sorted(listening.bodies) == list(range(30, 100))
    again = {message.body for message in listening.messages if message.headers == {"again": True}}
    assert again == set(range(30, 60))
    sent.close()


def test_messages_that_are_alike_are_counted(tmp_path: Path) -> None:
    sent = SentFile(tmp_path / "1.sent")
    sent.write(DONE, [5, 5])
    assert [one.digest for one in left_out(messages([5, 6, 5, 5]), sent)] == [6, 5]
    sent.close()


def test_without_receivers_a_batch_fails_and_is_not_complete(bus: Bus, tmp_path: Path) -> None:
    sent = SentFile(tmp_path / "1.sent")
    with pytest.raises(NotDelivered):
        send(bus, range(3), sent, linger=0.3)
    assert not sent.is_complete
    assert not sent.done
    sent.close()
