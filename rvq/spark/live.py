"""A bus that is recorded beside Spark's driver, for one query. Owns the recorder, its thread and its end.

Spark keeps one Python process for each query that reads a stream of ours; the recorder lives in it, in a thread with a
loop of its own. When the query stops, or the driver dies, that process is told (SIGTERM, or the end of its input), and
the recorder leaves in good order. If it is killed as well, its group is missing, senders hold what is the group's, and
the next start goes on.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from concurrent.futures import Future
from pathlib import Path
from types import FrameType
from typing import Final

from rvq.aio import run
from rvq.aio.recorder import Recorder
from rvq.errors import JournalError, RvqError, SparkError
from rvq.journal import JournalReader
from rvq.spark.bus import Live

logger = logging.getLogger("rvq.spark")

OPEN_S: Final = 60.0
"""For the folder to be opened: what a dead recorder left is checked first."""
LEAVE_S: Final = 10.0
"""For what is ours to get to the disk when the query stops; what is left then is handed back, and senders hold it."""


class LiveRecorder:
    """Records the labels of a bus until it is stopped. When `start` returns, the folder can be read as a journal."""

    def __init__(self, live: Live, folder: str) -> None:
        self._live = live
        self._folder = Path(folder)
        self._opened: Future[Recorder] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="rvq-live", daemon=True)

    # --- for the thread of Spark's calls --------------------------------------------------------------------------

    def start(self) -> None:
        """SparkError, in one sentence, if it cannot be."""
        end_in_good_order()
        self._thread.start()
        try:
            self._opened.result(OPEN_S)
        except TimeoutError:
            raise SparkError(f"{self._folder} could not be opened within {OPEN_S:g} s: see the driver's log") from None
        except RvqError as error:
            raise SparkError(f"the bus cannot be recorded: {error}") from error

    def check(self) -> None:
        """SparkError if nothing is recorded any more, for good."""
        if self._failure is not None:
            raise SparkError(f"the bus is not recorded any more: {self._failure}") from self._failure

    def stop(self) -> None:
        """Leave, and wait until what was recorded is sealed. Twice is fine."""
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread.ident is not None:
            self._thread.join(2 * LEAVE_S)

    # --- the recorder's thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            run(self._record())
        except BaseException as error:  # told to whoever asks next
            self._failure = error
            if not self._opened.done():
                self._opened.set_exception(error)
            elif not isinstance(error, asyncio.CancelledError):
                logger.error("the bus is not recorded any more: %s", error)

    async def _record(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        recorder = Recorder(self._folder, self._live.labels, group=self._group(), bus=self._live.open_bus())
        async with recorder:
            self._opened.set_result(recorder)
            stopped, recorded = asyncio.ensure_future(self._stop.wait()), asyncio.ensure_future(recorder.wait())
            await asyncio.wait({stopped, recorded}, return_when=asyncio.FIRST_COMPLETED)
            if recorded.done():
                stopped.cancel()
                recorded.result()
                return
            recorder.leave()
            _, late = await asyncio.wait({recorded}, timeout=LEAVE_S)
            for task in late:
                task.cancel()

    def _group(self) -> str:
        """That of the folder, if it is a journal: it may have been made on another host, or moved."""
        if self._live.is_named:
            return self._live.group
        try:
            return JournalReader(self._folder).group
        except JournalError:
            return self._live.group  # not one yet; if it is a bad one, opening it finds the words


def end_in_good_order() -> None:
    """Spark ends this process with SIGTERM: then whoever reads for it is told to stop, as if its input had ended."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: it is on its way
    raise SystemExit(0)
