"""The line says what is done, and is drawn while the block lasts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rvq.spark.progress import ProgressLine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_line_says_what_is_done(spark: SparkSession) -> None:
    drawn: list[str] = []
    with ProgressLine(spark, "audit", drawn.append) as line:
        line.say("reading")
        assert re.fullmatch(r"audit: reading  (\d+ of \d+ tasks  )?\d+ s", drawn[-1])
    many = len(drawn)
    assert not line._thread.is_alive()
    assert len(drawn) == many
