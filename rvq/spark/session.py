"""A Spark session for the jobs. Owns what they tell Spark, and the words if there is no Java."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rvq.errors import SparkError
from rvq.spark.source import RvqDataSource

LOCAL: Final = "local[*]"


def make_session(master: str = LOCAL, name: str = "rvq", settings: dict[str, str] | None = None) -> SparkSession:
    """A session at this master. SparkError if Java is missing or the master cannot be reached."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        raise SparkError(
            "Spark needs Java 17 or newer, and there is none: install it, or set JAVA_HOME (rvq needs it for"
            " nothing else)"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(name)
    told = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR", "spark.sql.session.timeZone": "UTC"}
    if master.startswith("local"):
        # Nothing that is not asked for leaves the machine, and a few tasks are enough for a few cores.
        cores = str(2 * (os.cpu_count() or 1))
        told |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": cores,
        }
    for key, text in (told | (settings or {})).items():
        builder = builder.config(key, text)
    try:
        session = builder.getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise SparkError(
            f"no Spark at {master} ({str(error).splitlines()[0]:.200}): give --master local[*], or see its log"
        ) from error
    session.dataSource.register(RvqDataSource)
    return session
