"""Recorders on real sockets and real files: done means on disk, whatever happens to the disk or to them."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import rvq
from rvq.aio import recorder as module
from rvq.aio.recording import Recording
from rvq.journal import JournalReader, verify
from rvq.journal.messages import messages
from rvq.journal.storage import OsFile
from rvq.wire.codec import decode_control
from rvq.wire.frames import Handled, Stamp, TableFrame
from tests.aio.ends import Worker, soon, stays, until


def recorded(root: Path, label: str = "work") -> list[Any]:
    """The bodies in a journal, in order."""
    return [message.content.body for message in messages(JournalReader(root), label)]


def synced(root: Path, label: str = "work") -> int:
    return sum(end.row for end in JournalReader(root).tail(label).values())


async def test_what_is_done_is_on_disk(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send({"job": 1}, key="k", headers={"a": 1})
        await sender.send(b"raw")
        await sender.send_many(range(1000))
        await soon(sender.flush())
        assert synced(tmp_path) == 1002, "without waiting for anything after the flush"
        assert recorded(tmp_path) == [{"job": 1}, b"raw", *range(1000)]
        first = next(messages(JournalReader(tmp_path), "work"))
        assert (first.content.key, first.content.headers, first.id) == ("k", {"a": 1}, f"{sender.id:016x}-1")
    assert verify(tmp_path).findings == [], "sealed, with nothing to remark"


async def test_large_messages_and_several_labels_are_recorded(bus: rvq.Bus, tmp_path: Path) -> None:
    large = bytes(300_000)
    async with rvq.Recorder(tmp_path, ["one", "two"], bus=bus) as recorder:
        for label in ("one", "two"):
            async with rvq.Sender(label, bus=bus) as sender:
                await sender.send_many([large, label])
        assert {label: stats.acked for label, stats in recorder.stats.items()} == {"one": 2, "two": 2}
    assert recorded(tmp_path, "one") == [large, "one"] and recorded(tmp_path, "two") == [large, "two"]


async def test_a_due_message_is_recorded_at_once_and_does_not_hold_the_journal_up(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send("in an hour", delay=3600.0)
        await soon(sender.flush())
    assert recorded(tmp_path) == ["in an hour"]


async def test_several_recorders_share_the_work_and_what_they_have_is_all_of_it(bus: rvq.Bus, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        recorders = [await stack.enter_async_context(rvq.Recorder(tmp_path, "work", bus=bus)) for _ in range(3)]
        await until(lambda: all(len(table.members) == 3 for r in recorders if (table := r.tables["work"])))
        await until(lambda: all(r.tables["work"] is not None for r in recorders))
        sender = await stack.enter_async_context(rvq.Sender("work", bus=bus))
        await until(lambda: len(sender.tables["journal"].members) == 3 if "journal" in sender.tables else False)
        await sender.send_many(range(3000))
        await sender.send_many(range(3000, 6000), key="same")
        await soon(sender.flush())
        shares = [recorder.stats["work"].acked for recorder in recorders]
    assert sum(shares) == 6000 and min(shares) >= 1000, shares
    assert Counter(recorded(tmp_path)) == Counter(range(6000))


async def test_a_recorder_that_comes_back_goes_on_in_the_same_folder(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        for turn in range(3):
            async with rvq.Recorder(tmp_path, "work", bus=bus):
                await sender.send(turn)
                await soon(sender.flush())
    assert recorded(tmp_path) == [0, 1, 2]


async def test_the_journal_alone_tells_who_owned_and_who_did_what(bus: rvq.Bus, tmp_path: Path) -> None:
    recording = rvq.Recorder(tmp_path, "work", bus=bus)
    async with recording, Worker(bus) as worker, rvq.Sender("work", bus=bus) as sender:
        await until(lambda: sender.tables.keys() == {"default", "journal"})
        await sender.send_many(range(100))
        await soon(sender.flush())
        me = worker.receiver.id
    reader = JournalReader(tmp_path)
    (start,) = reader.head("work").values()
    frames = [decode_control(bytes(entry.payload)) for entry in reader.entries("work", start) if not entry.rows]
    assert {Stamp, TableFrame, Handled} <= set(map(type, frames))
    done = [run for frame in frames if isinstance(frame, Handled) and frame.source == me for run in frame.runs]
    assert sum(run.last - run.first + 1 for run in done) == 100


async def test_what_a_dead_recorder_left_on_disk_is_not_stored_again(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        dead = rvq.Recorder(tmp_path, "work", bus=bus)
        await dead.__aenter__()
        await until(lambda: "journal" in sender.tables)
        await sender.send_many(range(50))
        await soon(sender.flush())
        with monkeypatch.context() as death:
            death.setattr(Recording, "stored", lambda *_: None)  # on disk, and nobody is told
            await sender.send_many(range(50, 100))
            await sender.send(bytes(300_000))
            await until(lambda: synced(tmp_path) == 101)
            kill(dead)
        async with rvq.Recorder(tmp_path, "work", bus=bus) as other:
            await sender.send_many(range(100, 150))
            await soon(sender.flush())
            assert other.stats["work"].acked == 101, "told to be done, whoever stored them"
    assert synced(tmp_path) == 151
    assert Counter(map(str, recorded(tmp_path))) == Counter(map(str, [*range(150), bytes(300_000)]))


def kill(recorder: rvq.Recorder) -> None:
    """As kill -9 does it: no goodbye, and files as they are."""
    assert recorder._writing is not None and recorder._journal is not None
    recorder._writing.cancel()
    for recording in recorder._recordings:
        recording._driver.close()
    recorder._journal.abort()
    recorder._closed = True


async def test_a_recorder_that_cannot_read_what_is_there_records_all_the_same(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def damaged(*_: object) -> None:
        raise rvq.JournalError(tmp_path, "a bit changed")

    monkeypatch.setattr(module, "stored_lately", damaged)
    async with rvq.Recorder(tmp_path, "work", bus=bus), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send("kept")
    assert recorded(tmp_path) == ["kept"]
    assert "a bit changed" in caplog.text


class Refusing:
    """Lets the disk refuse to sync, as long as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on = False
        self.tries = 0
        sync = OsFile.sync

        def refuse(file: OsFile) -> None:
            self.tries += 1
            if self.is_on:
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(file)

        monkeypatch.setattr(OsFile, "sync", refuse)


async def test_a_full_disk_loses_nothing_it_is_said_aloud_and_senders_wait(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    disk = Refusing(monkeypatch)
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder, rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send("before")
        await soon(sender.flush())
        disk.is_on = True
        await sender.send_many(range(100))
        await until(lambda: recorder.failing)
        tries = disk.tries
        await until(lambda: disk.tries > tries + 2, "it tries again")
        await stays(lambda: sender.undone == 100, 0.1)
        assert "No space left" in str(recorder.failing)
        disk.is_on = False
        await soon(sender.flush())
        assert recorder.failing is None
        assert Counter(recorded(tmp_path)) == Counter(["before", *range(100)])
    said = [(record.levelno, record.message) for record in caplog.records if "senders will wait" in record.message]
    assert [level for level, _ in said] == [logging.ERROR], "once, not at each try"
    assert "records again" in caplog.text


async def test_a_recorder_with_a_full_disk_can_be_closed_and_its_work_goes_to_another(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.05)
    disk = Refusing(monkeypatch)
    async with rvq.Sender("work", bus=bus) as sender:
        broken = rvq.Recorder(tmp_path / "one", "work", bus=bus)
        await broken.__aenter__()
        await until(lambda: "journal" in sender.tables)
        disk.is_on = True
        await sender.send_many(range(10))
        await until(lambda: broken.failing)
        with pytest.raises(rvq.JournalError, match="No space left"):
            await soon(broken.aclose())
        disk.is_on = False
        async with rvq.Recorder(tmp_path / "two", "work", bus=bus):
            await soon(sender.flush())
    assert Counter(recorded(tmp_path / "two")) == Counter(range(10))


@pytest.mark.parametrize("sync", [0.05, "never"])
async def test_with_another_policy_done_means_written_and_closing_syncs_all(
    bus: rvq.Bus, tmp_path: Path, sync: Any
) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus, sync=sync), rvq.Sender("work", bus=bus) as sender:
        await until(lambda: "journal" in sender.tables)
        await sender.send_many(range(100))
        await soon(sender.flush())
        if sync == "never":
            assert synced(tmp_path) == 0
        else:
            await until(lambda: synced(tmp_path) == 100)
    assert recorded(tmp_path) == [*range(100)]


async def test_leaving_records_what_is_ours_and_ends_the_wait(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Sender("work", bus=bus) as sender:
        async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder:
            await until(lambda: "journal" in sender.tables)
            await sender.send_many(range(5000))
            recorder.leave()
            await soon(recorder.wait())
            assert recorder.stats["work"].acked == synced(tmp_path)
        async with rvq.Recorder(tmp_path, "work", bus=bus):
            await soon(sender.flush())
    assert Counter(recorded(tmp_path)) == Counter(range(5000)), "and nothing twice"


async def test_whole_hours_that_are_too_old_are_deleted(
    bus: rvq.Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.05)
    old = tmp_path / "label=work" / "part=2020010100"
    async with rvq.Recorder(tmp_path, "work", bus=bus):
        pass
    old.mkdir(parents=True)
    (old / "something.idx").touch()
    async with rvq.Recorder(tmp_path, "work", bus=bus, keep=3600.0):
        await until(lambda: not old.exists())


async def test_a_folder_of_another_group_is_refused(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus):
        pass
    with pytest.raises(rvq.JournalError, match="journal"):
        async with rvq.Recorder(tmp_path, "work", group="other", bus=bus):
            pass


@pytest.mark.parametrize(
    "options",
    [{"labels": []}, {"labels": ""}, {"sync": "sometimes"}, {"sync": 0}, {"sync": True}, {"keep": -1}, {"group": ""}],
)
def test_odd_settings_are_refused(bus: rvq.Bus, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, rvq.RvqError), match="give "):
        rvq.Recorder(tmp_path, **({"labels": "work", "bus": bus} | options))


async def test_it_is_opened_once_and_closed_as_often_as_one_likes(bus: rvq.Bus, tmp_path: Path) -> None:
    recorder = rvq.Recorder(tmp_path, "work", bus=bus)
    with pytest.raises(rvq.Closed, match="not open yet"):
        await recorder.wait()
    async with recorder:
        with pytest.raises(rvq.Closed, match="opened before"):
            await recorder.__aenter__()
    await recorder.aclose()
    assert "'work'" in repr(recorder)


async def test_cancelling_the_wait_does_not_end_the_recording(bus: rvq.Bus, tmp_path: Path) -> None:
    async with rvq.Recorder(tmp_path, "work", bus=bus) as recorder, rvq.Sender("work", bus=bus) as sender:
        waiting = asyncio.create_task(recorder.wait())
        await until(lambda: "journal" in sender.tables)
        waiting.cancel()
        await asyncio.wait({waiting})
        await sender.send("still")
        await soon(sender.flush())
    assert recorded(tmp_path) == ["still"]
