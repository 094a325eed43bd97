"""One Spark for all tests: small, on loopback, with nothing that they do not need. Skipped, with words, without it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("pyspark", "pyarrow", "numpy") if not __import__("importlib.util").util.find_spec(name)]
WHY_NOT = ""
if MISSING:
    WHY_NOT = f"needs {', '.join(MISSING)} (pip install rvq[spark])"
elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    WHY_NOT = "needs Java 17 or newer (Debian: apt install openjdk-17-jre-headless)"

collect_ignore_glob = ["test_*.py"] if MISSING else []
"""Their modules could not even be imported."""


def settings() -> dict[str, str]:
    """What every Spark of the tests is told."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.log.level": "ERROR",
    }


def environment() -> dict[str, str]:
    """Of every process that runs Spark."""
    return os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if WHY_NOT:
        pytest.skip(WHY_NOT)
    from pyspark.sql import SparkSession

    os.environ.update({name: text for name, text in environment().items() if os.environ.get(name) != text})
    builder = SparkSession.builder.master("local[2,3]").appName("rvq tests")
    for name, text in settings().items():
        builder = builder.config(name, text)
    session = builder.getOrCreate()
    yield session
    session.stop()
