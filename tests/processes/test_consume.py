"""`rvq.consume` in real processes: handlers that end them, kill -9 and SIGSTOP with a ledger, due times.

The senders are in the test's own process, since they live through all of it.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

import rvq
from tests.ledger.places import Place, PostgresPlace, SqlitePlace
from tests.ledger.server import Server, Unavailable

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0
WORDS = [f"word-{number}" for number in range(12)]


class Event(NamedTuple):
    """A line of a log. `at` is the wall clock."""

    name: str
    at: float
    words: list[str]


class Crew:
    """Processes that consume, and what they wrote down, those that are gone included."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self._errors: list[Path] = []
        self._logs: list[Path] = []
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, handler: str, **options: object) -> subprocess.Popen[bytes]:
        number = len(self._logs)
        log, errors = self._folder / f"{number}.log", self._folder / f"{number}.err"
        log.touch()
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        command = [sys.executable, "-m", "tests.processes.consumer", handler, "work", "--port", str(self._port)]
        with errors.open("wb") as out:
            process = subprocess.Popen([*command, "--log", str(log), *words], cwd=ROOT, stdout=out, stderr=out)
        self._logs.append(log)
        self._errors.append(errors)
        self.running.append(process)
        return process

    def events(self, name: str) -> list[Event]:
        found = [
            line.split() for log in self._logs for line in log.read_text().splitlines(keepends=True) if "\n" in line
        ]
        return sorted(
            (Event(event, float(at), words) for event, at, *words in found if event == name), key=lambda event: event.at
        )

    def handled(self) -> Counter[str]:
        """How often each body was handled."""
        return Counter(event.words[0] for event in self.events("handled"))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        process.wait(PATIENCE_S)
        self.running.remove(process)

    def bury_the_dead(self) -> int:
        """Those that ended by themselves: how many."""
        dead = [process for process in self.running if process.poll() is not None]
        for process in dead:
            self.running.remove(process)
        return len(dead)

    async def leave(self) -> None:
        """All end in good order, once they listen."""
        await until(lambda: len({event.words[1] for event in self.events("table")} & self._pids()) == len(self.running))
        for process in self.running:
            process.terminate()
        for process in self.running:
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0, self.words

    def _pids(self) -> set[str]:
        return {str(process.pid) for process in self.running}

    @property
    def words(self) -> str:
        return "\n".join(errors.read_text()[-2000:] for errors in self._errors)

    def end(self) -> None:
        for process in self.running:
            process.kill()
            process.wait(PATIENCE_S)


@pytest.fixture
async def crew(tmp_path: Path, port: int) -> AsyncIterator[Crew]:
    crew = Crew(tmp_path, port)
    try:
        yield crew
    finally:
        crew.end()
    assert "Traceback" not in crew.words


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.02)


async def flushed(sender: rvq.Sender) -> None:
    await sender.flush(PATIENCE_S)


# --- a handler that ends its process --------------------------------------------------------------------------------


async def test_a_message_that_ends_its_process_is_given_up_after_so_many_starts(crew: Crew, bus: rvq.Bus) -> None:
    for _ in range(2):
        crew.start("poison", attempts=3, concurrency=3)
    async with rvq.Receiver("work.dead", ack="manual", bus=bus) as dead, rvq.Sender("work", bus=bus) as sender:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send("poison")
        others = [f"job-{number}" for number in range(200)]
        await sender.send_many(others)
        finding = asyncio.create_task(anext(dead))
        deaths = 0
        while not finding.done():
            for _ in range(crew.bury_the_dead()):
                deaths += 1
                crew.start("poison", attempts=3, concurrency=3)
            await asyncio.wait({finding}, timeout=0.05)
        message = await finding
        message.ack()
        await flushed(sender)
        await crew.leave()
    letter = rvq.DeadLetter.from_body(message.body)
    assert (letter.body, letter.attempts) == ("poison", 3)
    assert "ended or was cut off at each of 3 attempts" in letter.error
    assert letter.first_owner != letter.last_owner
    starts = [event.words[2] for event in crew.events("handled") if event.words[0] == "poison"]
    assert (starts, deaths) == (["1", "2", "3"], 3)
    assert crew.handled().keys() == {"poison", *others}


# --- handing over ---------------------------------------------------------------------------------------------------


async def test_what_waits_at_a_slow_one_is_handed_over_to_an_idle_one(crew: Crew, bus: rvq.Bus, tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    crew.start("wait", hold=hold, concurrency=1)
    crew.start("plain")
    jobs = [f"job-{number}" for number in range(200)]
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many(jobs)
        # The slow one has one in hand, and one is not worth handing over.
        await until(lambda: len(crew.events("handled")) >= len(jobs) - 2)
        assert len(crew.events("begun")) == 1
        hold.unlink()
        await flushed(sender)
        await crew.leave()
    assert crew.handled() == Counter(jobs)


# --- effects exactly once -------------------------------------------------------------------------------------------


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A database with a table of words, none of which was counted yet."""
    if request.param == "sqlite":
        yield with_words(SqlitePlace(tmp_path / "work.db"))
        return
    server: Server = request.getfixturevalue("database")
    with closing(PostgresPlace(server.dsn())) as postgres:
        yield with_words(postgres)


@pytest.fixture
def database() -> Iterator[Server]:
    """A PostgreSQL server that runs, and may be killed."""
    pytest.importorskip("psycopg", reason="needs psycopg (pip install 'rvq[postgres]')", exc_type=ImportError)
    try:
        server = Server()
    except Unavailable as reason:
        pytest.skip(str(reason))
    try:
        server.start()
        yield server
    finally:
        server.remove()


def with_words(place: Place) -> Place:
    place.query("CREATE TABLE words (word VARCHAR(20) PRIMARY KEY, times INTEGER NOT NULL)")
    for word in WORDS:
        place.query(f"INSERT INTO words VALUES ('{word}', 0)")
    return place


def totals(place: Place) -> dict[str, int]:
    return {word: times for word, times in place.query("SELECT word, times FROM words") if times}


async def test_words_are_counted_exactly_while_receivers_are_killed(crew: Crew, bus: rvq.Bus, place: Place) -> None:
    random, kills = Random(7), KILLS[type(place)]
    for _ in range(4):
        crew.start("count", ledger=place.name, attempts=50)
    sent: Counter[str] = Counter()
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 4)

        async def send() -> None:
            while True:
                word = random.choice(WORDS)
                await sender.send(f"{word}/{sent[word]}", key=word)
                sent[word] += 1
                await asyncio.sleep(0.02)

        sending = asyncio.create_task(send())
        for _ in range(kills):
            await asyncio.sleep(1.0)  # the pace of the killing, as told
            crew.kill(random.choice(crew.running))
            crew.start("count", ledger=place.name, attempts=50)
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        await flushed(sender)
        await crew.leave()
    assert totals(place) == dict(sent)
    assert place.query("SELECT count(*) FROM rvq_marks") == [(sent.total(),)]
    assert crew.handled().total() >= sent.total() - kills * 4, "nearly all were noted, too"


KILLS = {SqlitePlace: 20, PostgresPlace: 8}
"""One a second."""


async def test_one_that_is_stopped_in_mid_transaction_past_its_lease_has_its_effect_once(
    crew: Crew, bus: rvq.Bus, place: Place, tmp_path: Path
) -> None:
    hold = tmp_path / "hold"
    hold.touch()
    stopped = crew.start("hold", ledger=place.name, hold=hold)
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        await until(lambda: sender.tables)
        await sender.send("first", key=WORDS[0])
        await until(lambda: crew.events("inside"))
        stopped.send_signal(signal.SIGSTOP)
        crew.start("count", ledger=place.name)
        await until(lambda: crew.events("begun"))  # taken over, while the stopped one is inside
        hold.unlink()
        stopped.send_signal(signal.SIGCONT)
        # It commits, or rolls back since it was cancelled; the other one finds the mark, or counts.
        await flushed(sender)
        assert totals(place) == {WORDS[0]: 1}
        assert place.query("SELECT count(*) FROM rvq_marks") == [(1,)]
        await crew.leave()


async def test_when_the_database_goes_away_in_mid_transaction_the_message_is_retried_and_nothing_is_half_done(
    bus: rvq.Bus, database: Server
) -> None:
    place = PostgresPlace(database.dsn())
    with_words(place)
    attempts: list[int] = []

    async def handle(message: rvq.Message) -> None:
        attempts.append(message.attempt)
        async with message.transaction() as tx:
            await tx.execute("UPDATE words SET times = times + 1 WHERE word = %s", (message.key,))
            if message.attempt == 1:
                await asyncio.to_thread(database.kill)
        # Only who has committed is here.
        assert message.attempt > 1

    stop = asyncio.Event()
    patient = rvq.Backoff(first=0.1, factor=1.0, jitter=0.0)
    consuming = rvq.consume("work", handle, bus=bus, ledger=place.ledger(), attempts=500, backoff=patient, stop=stop)
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        running = asyncio.create_task(consuming)
        await sender.send("first", key=WORDS[0])
        await until(lambda: attempts and not database.is_running)
        await asyncio.to_thread(database.start)
        await flushed(sender)
        stop.set()
        await running
    with closing(place):
        assert totals(place) == {WORDS[0]: 1}
        assert place.query("SELECT count(*) FROM rvq_marks") == [(1,)]
    assert len(attempts) >= 2


# --- what was lost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("handler", "said"), [("look", "gave-up"), ("block", "handled")])
async def test_a_plain_function_that_was_stopped_past_its_lease_does_not_end_the_work_of_the_next(
    crew: Crew, bus: rvq.Bus, tmp_path: Path, handler: str, said: str
) -> None:
    holds = [tmp_path / "first", tmp_path / "second"]
    for hold in holds:
        hold.touch()
    stopped = crew.start(handler, hold=holds[0])
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        await until(lambda: sender.tables)
        await sender.send("job")
        await until(lambda: len(crew.events("begun")) == 1)
        stopped.send_signal(signal.SIGSTOP)
        crew.start("look", hold=holds[1])
        await until(lambda: len(crew.events("begun")) == 2)
        if handler == "block":
            holds[0].unlink()
        stopped.send_signal(signal.SIGCONT)
        await until(lambda: crew.events(said))
        await sender.send("more")  # whoever has it: by then what the stopped one had to say was heard
        holds[0].unlink(missing_ok=True)
        await until(lambda: len(crew.events("begun")) == 3)
        with pytest.raises(rvq.NotDelivered):
            await sender.flush(2.0)
        assert len(crew.events("gave-up")) == (handler == "look"), "the next one goes on"
        holds[1].unlink()
        await flushed(sender)
        await crew.leave()
    assert crew.handled() == Counter({"job": 1 + (handler == "block"), "more": 1})


# --- due times ------------------------------------------------------------------------------------------------------


async def test_due_messages_whose_owner_is_killed_are_handled_once_and_not_early(crew: Crew, bus: rvq.Bus) -> None:
    victim = crew.start("plain")
    crew.start("plain")
    async with rvq.Sender("work", bus=bus, linger=PATIENCE_S) as sender:
        await until(lambda: sender.tables and len(sender.tables["default"].members) == 2)
        await sender.send_many([f"late-{number}" for number in range(40)], delay=4.0)
        await sender.send_many([f"now-{number}" for number in range(40)])
        await until(lambda: len(crew.handled()) == 40)
        crew.kill(victim)
        await flushed(sender)
        await crew.leave()
    late = [event for event in crew.events("handled") if event.words[0].startswith("late")]
    assert Counter(event.words[0] for event in late) == {f"late-{number}": 1 for number in range(40)}
    assert all(event.at >= float(event.words[1]) for event in late), "one was early"
