"""A message as its receiver sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from rvq.ledger.ledger import Transaction
from rvq.message import Lost, Message, RichMessage, Settler, make_messages
from rvq.wire.records import SHARDS, Content, shard_of


class Notes:
    """Takes outcomes, and notes them."""

    def __init__(self) -> None:
        self.taken: list[tuple[object, ...]] = []
        self.flag = cast(Lost, object())
        self.under_way = cast(Transaction, object())

    def ack(self, message: Message) -> None:
        self.taken.append(("ack", message))

    def retry(self, message: Message, delay: float) -> None:
        self.taken.append(("retry", message, delay))

    def reject(self, message: Message, reason: str, trace: str, attempts: int) -> None:
        self.taken.append(("reject", message, reason, trace, attempts))

    def transaction(self, message: Message) -> Transaction:
        self.taken.append(("transaction", message))
        return self.under_way

    def lost(self, message: Message) -> Lost:
        self.taken.append(("lost", message))
        return self.flag


@dataclass
class AnOrigin:
    """The third frame of a stream: places 0, 1, 2 ... are the sequences 21, 24, 27 ..."""

    label: str = "work"
    group: str = "default"
    stream: int = 0xABC
    slot: int = 2
    asked_at: float | None = None
    receiver_index: int | None = 1
    sent_at: float = 1700000000.5
    settler: Settler | None = None
    retries: dict[int, int] = field(default_factory=dict)

    def sequence_of(self, place: int) -> int:
        return 21 + 3 * place


def test_a_message_tells_what_was_sent_and_where_it_came_from() -> None:
    message = RichMessage(Content({"n": 1}, "order-7", {"trace": "t"}), AnOrigin(), 2)
    assert (message.body, message.key, message.headers) == ({"n": 1}, "order-7", {"trace": "t"})
    assert (message.label, message.group, message.sender, message.sequence) == ("work", "default", 0xABC, 27)
    assert (message.lane, message.receiver_index, message.sent_at) == (2, 1, 1700000000.5)


def test_a_plain_message_has_no_key_and_no_headers() -> None:
    message = Message(b"raw", AnOrigin(), 0)
    assert (message.key, message.headers, message.shard) == (None, None, None)
    assert (message.due_at, message.ttl, message.expires_at, message.urgent) == (None, None, None, False)


def test_many_messages_of_a_frame_are_made_as_each_alone_would_be() -> None:
    origin, bodies = AnOrigin(), [b"a", {"n": 1}, None]
    made = make_messages(bodies, origin, 4)
    alone = [Message(body, origin, place) for place, body in enumerate(bodies, 4)]
    assert all(isinstance(message, Message) for message in made)
    shown = ("body", "place", "sequence", "id", "key", "headers", "due_at", "ttl", "urgent", "attempt", "redelivered")
    assert [[getattr(one, name) for name in shown] for one in made] == [
        [getattr(o, name) for name in shown] for o in alone
    ]
    assert list(map(repr, made)) == list(map(repr, alone))
    assert all(message.origin is origin for message in made)
    assert make_messages([], origin, 0) == []


def test_a_message_with_times_knows_when_it_is_due_and_when_it_is_over() -> None:
    message = RichMessage(Content(1, due_at=1700000010.0, ttl=30.0), AnOrigin(), 0)
    assert (message.due_at, message.ttl) == (1700000010.0, 30.0)
    assert message.expires_at == 1700000030.5, "counted from when it was sent, not from when it is due"
    assert not message.urgent


def test_an_urgent_message_says_so() -> None:
    assert RichMessage(Content(1, urgent=True), AnOrigin(), 0).urgent


def test_the_id_names_sender_and_sequence_and_is_the_same_for_every_delivery() -> None:
    first, again = Message(1, AnOrigin(), 1), Message(1, AnOrigin(slot=0, asked_at=5.0), 1)
    assert first.id == again.id == "0000000000000abc-24"
    assert repr(first) == "<Message 0000000000000abc-24 of 'work'>"


@pytest.mark.parametrize("key", ["order-7", b"order-7"])
def test_the_shard_of_a_message_is_that_of_its_key(key: str | bytes) -> None:
    message = RichMessage(Content(1, key), AnOrigin(), 0)
    assert message.shard == shard_of(key)
    assert 0 <= shard_of(key) < SHARDS


def test_the_first_attempt_of_an_own_message_is_no_redelivery() -> None:
    message = Message(1, AnOrigin(), 0)
    assert (message.attempt, message.redelivered, message.lane_asked_at) == (1, False, None)


def test_each_retry_is_one_more_attempt_and_a_redelivery() -> None:
    message = Message(1, AnOrigin(retries={0: 2}), 0)
    assert (message.attempt, message.redelivered) == (3, True)
    assert Message(1, AnOrigin(retries={0: 2}), 1).attempt == 1


def test_a_message_of_an_inherited_lane_may_have_been_handled_before() -> None:
    message = Message(1, AnOrigin(asked_at=12.5), 0)
    assert (message.attempt, message.redelivered, message.lane_asked_at) == (1, True, 12.5)


def test_outcomes_go_to_whoever_gave_the_message_out() -> None:
    notes = Notes()
    message = Message(1, AnOrigin(settler=notes), 0)
    message.ack()
    message.retry()
    message.retry(2.5)
    message.reject()
    message.reject("no such customer")
    message.bury("KeyError: 7", trace="Traceback …", attempts=3)
    assert message.lost is notes.flag
    assert message.transaction() is notes.under_way
    assert notes.taken == [
        ("ack", message),
        ("retry", message, 0.0),
        ("retry", message, 2.5),
        ("reject", message, "", "", 0),
        ("reject", message, "no such customer", "", 0),
        ("reject", message, "KeyError: 7", "Traceback …", 3),
        ("lost", message),
        ("transaction", message),
    ]


def test_a_message_that_nobody_settles_says_so() -> None:
    with pytest.raises(AssertionError, match="settled by their world"):
        Message(1, AnOrigin(), 0).ack()


def test_a_message_holds_nothing_that_its_frame_has() -> None:
    """Hot: one is made per message."""
    with pytest.raises(AttributeError):
        Message(1, AnOrigin(), 0).note = 1  # type: ignore[attr-defined]
