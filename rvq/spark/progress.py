"""A line that says how far Spark is. Owns asking Spark, from a thread of its own; drawing is the caller's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final

from pyspark.sql import SparkSession

ASK_S: Final = 0.5


class ProgressLine:
    """While the block lasts, `draw` is called with what to show. What is said with `say` is shown in front."""

    def __init__(self, spark: SparkSession, name: str, draw: Callable[[str], None]) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._name, self._draw = name, draw
        self._doing = ""
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rvq-progress", daemon=True)

    def say(self, doing: str) -> None:
        """What is being done now."""
        self._doing = doing
        self._draw(self.line())

    def line(self) -> str:
        """How it looks now."""
        done = total = 0
        for id in self._tracker.getActiveStageIds():
            stage = self._tracker.getStageInfo(id)
            if stage is not None:
                done, total = done + stage.numCompletedTasks, total + stage.numTasks
        parts = [f"{self._name}: {self._doing}".rstrip(": "), f"{time.monotonic() - self._began:.0f} s"]
        if total:
            parts.insert(1, f"{done} of {total} tasks")
        return "  ".join(parts)

    def _watch(self) -> None:
        while not self._stop.wait(ASK_S):
            self._draw(self.line())

    def __enter__(self) -> ProgressLine:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(2 * ASK_S)
