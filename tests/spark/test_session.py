"""A session for the jobs, and the words if there can be none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rvq.errors import SparkError
from rvq.spark.session import make_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_without_java_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkError, match="Java 17 or newer, and there is none: install it"):
        make_session()


def test_a_session_knows_the_format_even_if_rvq_is_not_installed_as_a_package(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = make_session("local[2]")
    assert session.sparkContext is spark.sparkContext, "there is one in a process"
    with pytest.raises(Exception, match="no such folder"):
        session.read.format("rvq").load(str(tmp_path / "none")).count()
