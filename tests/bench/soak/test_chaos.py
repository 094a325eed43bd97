"""A schedule is carried out as it stands: on processes and a network that only write down what is done to them."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from bench.soak import chaos as module
from bench.soak.chaos import Chaos, Span
from bench.soak.schedule import EVERYWHERE, Fault, Kind


class FakeMember:
    """One that does as it is told at once, unless `stays`."""

    def __init__(self, host: str, number: int, done: list[str], stays: bool = False) -> None:
        self.host, self.name, self.stays = host, f"{host}.{number}", stays
        self.done, self.has_opened, self.end = done, True, "runs"
        self.is_running, self.rss_bytes, self.tail = True, 1_000_000, "its last words"
        self.rekeyed, self.status = 0, None
        self.process = SimpleNamespace(poll=lambda: self.status)

    def count(self, event: str) -> int:
        return self.rekeyed

    def kill(self) -> float:
        self.done.append(f"kill {self.name}")
        self.is_running = False
        return time.monotonic()

    def stop(self) -> float:
        self.done.append(f"stop {self.name}")
        return time.monotonic()

    def resume(self) -> float:
        self.done.append(f"resume {self.name}")
        return time.monotonic()

    def terminate(self) -> None:
        self.done.append(f"terminate {self.name}")
        self.is_running = self.stays

    def mark_end(self, how: str, at: float) -> None:
        self.end = how


class FakeCrew:
    def __init__(self, *hosts: str) -> None:
        self.done: list[str] = []
        self.running: dict[str, FakeMember] = {}
        self.network = FakeNetwork(self.done)
        for host in hosts:
            self.running[host] = FakeMember(host, 0, self.done)

    def start(self, host: str, age_s: float) -> None:
        number = int(self.running[host].name.partition(".")[2]) + 1
        self.running[host] = FakeMember(host, number, self.done)
        self.done.append(f"start {host}.{number} {age_s:g}")

    def set_wall(self, host: str, off_s: float) -> None:
        self.done.append(f"wall {host} {off_s:g}")

    def set_sync(self, host: str, more_s: float) -> None:
        self.done.append(f"sync {host} {more_s:g}")

    def add_key(self) -> None:
        self._change_keys("add")

    def use_key(self) -> None:
        self._change_keys("use")

    def drop_keys(self) -> None:
        self._change_keys("drop")

    def _change_keys(self, step: str) -> None:
        self.done.append(f"{step} key, seen {[member.rekeyed for member in self.running.values()]}")


class FakeNetwork:
    def __init__(self, done: list[str]) -> None:
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return lambda *words, **options: self._done.append(" ".join([name, *words, *map(str, options.items())]))


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"LOOK_S": 0.002, "QUIET_S": 0.0, "AGAIN_S": 0.01, "STEP_S": 0.01, "END_S": 0.3}.items():
        monkeypatch.setattr(module, name, seconds)


def carried_out(crew: FakeCrew, *faults: Fault) -> Chaos:
    chaos = Chaos(crew, faults, lambda words: None)  # type: ignore[arg-type]
    chaos.run(0.1)
    return chaos


def test_one_that_is_killed_is_started_again_on_a_host_of_another_age() -> None:
    crew = FakeCrew("a0")
    chaos = carried_out(crew, Fault(0.0, Kind.KILL, "a0", 0.02, 77))
    assert crew.done == ["kill a0.0", "start a0.1 77", "terminate a0.1"]
    [span] = chaos.spans
    assert (span.kind, span.process) == (Kind.KILL, "a0.0") and span.to < float("inf")


def test_one_that_is_stopped_goes_on_and_its_span_is_as_long() -> None:
    crew = FakeCrew("a0")
    [span] = carried_out(crew, Fault(0.0, Kind.STOP, "a0", 0.05)).spans
    assert crew.done == ["stop a0.0", "resume a0.0", "terminate a0.0"]
    assert 0.05 <= span.to - span.since < float("inf")


def test_one_that_leaves_is_started_again_when_it_has_left_and_once_only() -> None:
    crew = FakeCrew("a0")
    crew.running["a0"].stays = True
    chaos = carried_out(crew, Fault(0.0, Kind.LEAVE, "a0", 0.01), Fault(0.05, Kind.KILL, "a0", 0.01, 5))
    assert crew.done == ["terminate a0.0", "kill a0.0", "start a0.1 5", "terminate a0.1"]
    assert all(span.to < float("inf") for span in chaos.spans)


def test_one_that_has_not_left_at_the_end_is_waited_for_with_the_others() -> None:
    crew = FakeCrew("a0")
    crew.running["a0"].stays = True
    chaos = carried_out(crew, Fault(0.0, Kind.LEAVE, "a0", 0.01))
    assert crew.done == ["terminate a0.0", "terminate a0.0"]
    assert chaos.spans[0].to < float("inf") and ["did not leave" in trouble for trouble in chaos.troubles] == [True]


def test_one_that_just_starts_is_not_asked_to_leave() -> None:
    crew = FakeCrew("a0")
    crew.running["a0"].has_opened = False
    chaos = Chaos(crew, [], lambda words: None)  # type: ignore[arg-type]
    chaos._begin(Fault(0.0, Kind.LEAVE, "a0", 0.01))
    assert not crew.done and not chaos.spans


@pytest.mark.parametrize(
    ("kind", "amount", "done"),
    [
        (Kind.PULL, 0, ["pull_cable a0", "put_back_cable a0"]),
        (Kind.DEAF, 0, ["disturb a0 ('loss', 100)", "disturb a0"]),
        (Kind.MUTE, 0, ["disturb a0 ('mute', 100)", "disturb a0"]),
        (Kind.LOSS, 7, ["disturb a0 ('loss', 7)", "disturb a0"]),
        (Kind.SPLIT, 0, ["split", "heal"]),
        (Kind.SLOW, 0.5, ["sync a0 0.5", "sync a0 0"]),
        (Kind.STEP, -1.5, ["wall a0 -1.5"]),
    ],
)
def test_what_is_done_to_a_host_is_undone(kind: Kind, amount: float, done: list[str]) -> None:
    crew = FakeCrew("a0")
    [span] = carried_out(crew, Fault(0.0, kind, "a0", 0.02, amount)).spans
    assert crew.done[: len(done)] == done
    assert span.since <= span.to < float("inf")


def test_each_step_of_a_new_key_waits_for_all_who_run_and_have_begun() -> None:
    crew = FakeCrew("a0", "b0", "b1")
    late = crew.running["b0"]
    crew.running["b1"].has_opened = False
    chaos = Chaos(crew, [], lambda words: None)  # type: ignore[arg-type]
    chaos._begin(Fault(0.0, Kind.REKEY, EVERYWHERE, 0.01))

    def turn(times: int = 20) -> list[str]:
        for _ in range(times):
            chaos._turn()
        return [words.split()[0] for words in crew.done]

    assert turn() == ["add"]
    crew.running["a0"].rekeyed = 1
    assert turn() == ["add"], "b0 has not taken it yet"
    late.rekeyed = 1
    crew.running["b1"].has_opened = True
    assert turn() == ["add", "use"]
    crew.running["a0"].rekeyed = crew.running["b1"].rekeyed = 2
    late.is_running = False
    assert turn() == ["add", "use", "drop"]
    crew.running["a0"].rekeyed = crew.running["b1"].rekeyed = 3
    turn()
    assert chaos.spans[0].to < float("inf")


def test_one_that_does_not_take_other_keys_is_a_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REKEY_S_MAX", 0.05)
    crew = FakeCrew("a0", "b0")
    chaos = carried_out(crew, Fault(0.0, Kind.REKEY, EVERYWHERE, 0.01))
    assert chaos.troubles == ["a0.0, b0.0 did not take other keys within 0.05 s"]
    assert [words.split()[0] for words in crew.done] == ["add", "terminate", "terminate"]


def test_one_that_ends_by_itself_is_a_trouble_and_nothing_more_is_done() -> None:
    crew = FakeCrew("a0", "b0")
    crew.running["a0"].status, crew.running["a0"].is_running = 1, False
    chaos = carried_out(crew, Fault(0.05, Kind.KILL, "b0", 0.01))
    assert ["a0.0 ended by itself with 1" in trouble for trouble in chaos.troubles] == [True]
    assert not chaos.spans


def test_one_that_does_not_end_is_a_trouble() -> None:
    crew = FakeCrew("s0", "a0")
    crew.running["s0"].stays = True
    [trouble] = carried_out(crew).troubles
    assert "s0.0 was not done with its messages within" in trouble and "its last words" in trouble
    assert crew.done == ["terminate s0.0", "terminate a0.0"], "senders first"


def test_memory_is_looked_at() -> None:
    chaos = carried_out(FakeCrew("a0", "b0"))
    assert {sample.host for sample in chaos.samples} == {"a0", "b0"}


def test_a_cut_is_between_a_host_and_all_and_a_split_between_two_sides() -> None:
    pulled = Span(Kind.PULL, "a0", 0.0, 1.0)
    assert pulled.cuts("a0", "s0") and pulled.cuts("s0", "a0") and not pulled.cuts("a1", "s0")
    split = Span(Kind.SPLIT, EVERYWHERE, 0.0, 1.0)
    assert split.cuts("a2", "s0") and not split.cuts("a0", "s0") and not split.cuts("a2", "s2")
    assert not Span(Kind.KILL, "a0", 0.0, 1.0).cuts("a0", "s0")
