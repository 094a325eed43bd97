"""Reading a bus: options say where it is and where it is recorded, and each wrong one is refused in one sentence."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rvq.errors import BusError, SparkError
from rvq.spark.options import ReadOptions, read_options

LIVE = {"bus": "lo", "subscribe": "work", "checkpointLocation": "/c"}


def options(**more: str) -> ReadOptions:
    return read_options(LIVE | more, streaming=True)


def test_the_journal_of_a_bus_is_in_the_checkpoint_and_read_from_its_beginning() -> None:
    found = options()
    assert (found.path, found.starting) == ("/c/rvq-source", "earliest")
    assert found.live is not None and found.live.labels == ("work",)
    assert found.live.bus == {"interface": "lo"} and found.live.keep is None


def test_a_folder_of_ones_own_wins_over_the_checkpoint() -> None:
    assert options(path="/data/journal").path == "/data/journal"


def test_paths_are_from_the_root_since_executors_run_elsewhere() -> None:
    assert options(checkpointLocation="c").path == str(Path.cwd() / "c/rvq-source")
    assert options(checkpointLocation="file:///c%20d").path == "/c d/rvq-source"
    assert read_options({"path": "j"}, streaming=True).path == str(Path.cwd() / "j")


def test_the_bus_is_as_the_sink_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    live = options(bus="127.0.0.1", port="7500", address="239.1.0.0/16").live
    assert live is not None
    assert (live.open_bus().interface, live.open_bus().port) == ("127.0.0.1", 7500)
    assert live.open_bus().address == "239.1.0.0/16"
    monkeypatch.setenv("RVQ_PORT", "7600")
    from_env = options(bus="env").live
    assert from_env is not None and from_env.open_bus().port == 7600


def test_a_query_that_is_started_again_is_of_the_same_group_and_no_two_are_of_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def group(**more: str) -> str:
        live = options(**more).live
        assert live is not None
        return live.group

    assert group() == group() == group(checkpointLocation="/x/../c")
    assert group() != group(checkpointLocation="/d")
    here = group()
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert group() != here
    assert group(group="mine") == "mine"


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0.0), ("15m", 900.0), ("12h", 43_200.0), ("7d", 604_800.0)])
def test_keep_is_a_duration(text: str, seconds: float) -> None:
    live = options(keep=text).live
    assert live is not None and live.keep == seconds


@pytest.mark.parametrize(
    ("given", "streaming", "words"),
    [
        (LIVE, False, "bus is for spark.readStream"),
        ({"bus": "lo", "checkpointLocation": "/c"}, True, "give subscribe=work"),
        ({"bus": "lo", "subscribePattern": ".*", "checkpointLocation": "/c"}, True, "give subscribe=work"),
        ({"bus": "lo", "subscribe": "work"}, True, "to readStream as well"),
        (LIVE | {"checkpointLocation": "hdfs://h/c"}, True, "a folder that processes see as such"),
        (LIVE | {"keep": "long"}, True, "not a duration"),
        (LIVE | {"port": "http"}, True, "not a port"),
        ({"path": "/j", "port": "7500"}, True, "port is for reading a bus"),
        ({"path": "/j", "keep": "7d"}, True, "keep is for reading a bus"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(given: dict[str, str], streaming: bool, words: str) -> None:
    with pytest.raises(SparkError, match=words):
        read_options(given, streaming=streaming)


def test_the_checks_of_a_bus_are_its_own() -> None:
    with pytest.raises(BusError, match="not a port"):
        options(port="70000")
