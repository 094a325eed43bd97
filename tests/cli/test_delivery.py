"""One run of rvq-send, with a sender that answers as told."""

from __future__ import annotations

import io
import math
import signal
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

import rvq
from rvq.bus import Bus
from rvq.cli.account import Account
from rvq.cli.bodies import Keyed
from rvq.cli.command import WrongUse
from rvq.cli.delivery import PATIENCE_S, Delivery, Teller
from rvq.cli.dues import Timing
from rvq.cli.words import Words
from rvq.errors import BadMessage, NotDelivered
from tests.cli.fakes import FakeSender, overheard


class FakeSource:
    """Gives these runs, and raises the errors among them."""

    is_terminal = False
    what = "line"

    def __init__(self, *runs: list[Keyed] | BaseException, fraction: float | None = None) -> None:
        self._runs = runs
        self._fraction = fraction

    async def runs(self) -> AsyncIterator[list[Keyed]]:
        for run in self._runs:
            if isinstance(run, BaseException):
                raise run
            yield run

    def fraction(self) -> float | None:
        return self._fraction


class Setting:
    """A delivery through a fake sender."""

    def __init__(self, sender: FakeSender, **options: Any) -> None:
        self.sender = sender
        self.account = Account(0.0)
        words, self._stream = overheard()
        self._delivery = Delivery("rvq-send", self.account, words, **({"rate": None, "linger": 0.05} | options))

    async def run(self, *runs: list[Keyed] | BaseException) -> int:
        return await self._delivery.run("work", Bus(), FakeSource(*runs))

    @property
    def words(self) -> list[str]:
        return self._stream.getvalue().splitlines()


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(sender: FakeSender, **options: Any) -> Setting:
        monkeypatch.setattr(rvq, "Sender", lambda label, **_: sender, raising=False)
        return Setting(sender, **options)

    return make


def plain(bodies: Iterable[Any]) -> list[Keyed]:
    return [(None, list(bodies))]


async def test_everything_is_sent_in_order_and_waited_for(setting: Any) -> None:
    scene = setting(FakeSender())
    assert await scene.run([("a", [1, 2]), ("b", [3])], plain([4])) == 0
    assert scene.sender.sent == [("a", [1, 2]), ("b", [3]), (None, [4])]
    assert scene.account.summary(0.42) == "sent 4, done 4, undone 0 in 0.42 s"
    assert scene.sender.left_with is None and scene.words == []


async def test_it_goes_on_waiting_while_something_is_done(setting: Any) -> None:
    scene = setting(FakeSender(done_per_flush=1), linger=0.01)
    assert await scene.run(plain(range(20))) == 0
    assert scene.account.done == 20


async def test_it_gives_up_when_nothing_is_done_and_closes_at_once(setting: Any) -> None:
    scene = setting(FakeSender(done_per_flush=0), linger=0.01)
    assert await scene.run(plain([1, 2])) == 1
    assert scene.sender.left_with is NotDelivered
    assert (scene.account.sent, scene.account.undone) == (2, 2)
    assert len(scene.words) == 1 and scene.words[0].startswith("rvq-send: gave up: 2 messages not done")


async def test_what_was_asked_for_is_sent_along(setting: Any) -> None:
    scene = setting(FakeSender(), timing=Timing(ttl=9.0, urgent=True))
    assert await scene.run([("a", [1])]) == 0
    assert scene.sender.options == [{"ttl": 9.0, "urgent": True}]


class Clock:
    """The time of day, which moves on by `step` whenever somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_900_000_000.0
        monkeypatch.setattr("rvq.cli.delivery.time", self)

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


class Slow(FakeSender):
    """Nothing is done before a time, and every flush takes as long as it may."""

    def __init__(self, clock: Clock, done_at: float) -> None:
        super().__init__(done_per_flush=0)
        self._clock, self._done_at = clock, done_at

    async def flush(self, timeout: float | None = None) -> None:
        assert timeout is not None
        if self._clock.now >= self._done_at:
            self.undone = 0
        else:
            self._clock.now += max(timeout, 0.001)
            raise NotDelivered(self.undone)


async def test_linger_counts_only_while_something_is_due(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    scene = setting(Slow(clock, clock.now + 89), linger=30, timing=Timing(delay=60))
    assert await scene.run(plain([1])) == 0


async def test_it_gives_up_when_it_was_due_for_as_long_as_linger(setting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    began = clock.now
    scene = setting(Slow(clock, math.inf), linger=30, timing=Timing(delay=60))
    assert await scene.run(plain([1])) == 1
    assert 89 < clock.now - began < 91


async def test_one_that_is_due_does_not_wait_for_those_that_are_not(
    setting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    began = clock.now

    class Moving(Slow):
        async def send_many(self, bodies: Iterable[Any], **options: Any) -> None:
            await super().send_many(bodies, **options)
            clock.now += 50

    scene = setting(Moving(clock, math.inf), linger=30, timing=Timing(delay=60))
    assert await scene.run(plain([1]), plain([2])) == 1
    # Due after 60 and 110 s; the first could have been done from 100 s on, where the waiting begins.
    assert 129 < clock.now - began < 131


async def test_without_linger_it_does_not_wait(setting: Any) -> None:
    scene = setting(FakeSender(done_per_flush=0), linger=0.0)
    assert await scene.run(plain([1])) == 1


@pytest.mark.parametrize(
    ("error", "words"), [(WrongUse("line 3 is bad"), "line 3 is bad"), (BadMessage("too odd"), "line 3: too odd")]
)
async def test_after_a_bad_line_what_was_sent_before_is_waited_for(setting: Any, error: Exception, words: str) -> None:
    scene = setting(FakeSender())
    assert await scene.run(plain([1, 2]), error, plain([4])) == 2
    assert scene.sender.bodies == [1, 2] and scene.account.undone == 0
    assert scene.words == [f"rvq-send: {words}"] and scene.sender.left_with is None


async def test_a_bad_line_before_anything_was_sent_is_wrong_use_too(setting: Any) -> None:
    scene = setting(FakeSender())
    assert await scene.run(WrongUse("line 1 is bad")) == 2
    assert scene.words == ["rvq-send: line 1 is bad"]


async def test_an_unreadable_input_is_a_fault(setting: Any) -> None:
    assert await setting(FakeSender()).run(plain([1]), OSError(5, "Input/output error")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_at_once_with_the_count(setting: Any, number: signal.Signals) -> None:
    class Interrupted(FakeSender):
        async def flush(self, timeout: float | None = None) -> None:
            signal.raise_signal(number)
            await super().flush(timeout)

    scene = setting(Interrupted(done_per_flush=0), linger=60)
    assert await scene.run(plain([1, 2, 3])) == 1
    assert scene.account.summary(1) == "sent 3, done 0, undone 3 in 1.00 s"
    assert scene.words == []


async def test_a_rate_cuts_what_is_sent_in_one_go(setting: Any) -> None:
    scene = setting(FakeSender(), rate=10_000)
    assert await scene.run(plain(range(1000))) == 0
    assert scene.sender.bodies == list(range(1000))
    assert len(scene.sender.sent) > 1


# --- the teller ---


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def told() -> tuple[Teller, io.StringIO]:
    words, stream = overheard()
    return Teller("rvq-send", words, Account(0.0), FakeSource()), stream


def test_why_it_waits_is_said_after_a_while_once_and_when_it_changes(told: tuple[Teller, io.StringIO]) -> None:
    teller, stream = told
    said = []
    for now, why in [
        (0.0, "nobody listens"),
        (PATIENCE_S / 2, "nobody listens"),
        (PATIENCE_S, "nobody listens"),
        (9.0, "nobody listens"),
        (9.1, "group a is full"),
        (9.2, None),
        (9.3, None),
    ]:
        before = len(stream.getvalue())
        teller.tell(now, why)
        said.append(stream.getvalue()[before:].removeprefix("rvq-send: ").strip())
    assert said == ["", "", "waiting: nobody listens", "", "waiting: group a is full", "going on", ""]


def test_a_short_wait_is_not_worth_a_word(told: tuple[Teller, io.StringIO]) -> None:
    teller, stream = told
    teller.tell(0.0, "nobody listens")
    teller.tell(0.1, None)
    teller.tell(PATIENCE_S, "nobody listens")
    assert stream.getvalue() == ""


def test_a_full_window_is_not_worth_a_word_while_work_is_done() -> None:
    words, stream = overheard()
    account = Account(0.0)
    teller = Teller("rvq-send", words, account, FakeSource())
    for tick in range(100):
        account.sent += 1
        teller.tell(tick * PATIENCE_S / 2, "the window is full")
    assert stream.getvalue() == ""
    teller.tell(101 * PATIENCE_S / 2, "the window is full")
    assert "waiting: the window is full" in stream.getvalue()


def shown_by(source: FakeSource, monkeypatch: pytest.MonkeyPatch, *, input_ended: bool = False) -> str:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    account = Account(0.0)
    account.sent, account.undone = 100, 50
    teller = Teller("rvq-send", Words(stream), account, source)
    teller.input_ended = input_ended
    teller.tell(2.0, None)
    return stream.getvalue()


def test_the_bar_knows_how_far_it_is_in_a_file_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sent 100  done 50  25/s" in shown_by(FakeSource(), monkeypatch)
    assert "#" not in shown_by(FakeSource(), monkeypatch)
    assert "[##########..............................]" in shown_by(FakeSource(fraction=0.5), monkeypatch)
    assert "[####################....................]" in shown_by(FakeSource(), monkeypatch, input_ended=True)


def test_there_is_no_bar_while_somebody_types(monkeypatch: pytest.MonkeyPatch) -> None:
    source = FakeSource()
    source.is_terminal = True
    assert shown_by(source, monkeypatch) == ""
    assert "done 50" in shown_by(source, monkeypatch, input_ended=True)
