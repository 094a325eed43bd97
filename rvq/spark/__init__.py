"""Spark: journals as tables and streams, labels as sinks, and the jobs on them. `pip install rvq[spark]`.

The jobs are functions of their modules: `rvq.spark.audit.audit`, `stats.stats`, `compact.compact`, `replay.replay`,
`pipeline.pipeline`. `spark.read.format("rvq")` works by itself once rvq is installed; nothing need be imported for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rvq.spark.session import make_session
    from rvq.spark.source import RvqDataSource

__all__ = ["RvqDataSource", "make_session"]

_HOMES = {"RvqDataSource": "source", "make_session": "session"}


def __getattr__(name: str) -> object:
    """Imported when it is used first: options and errors can be looked at without Spark."""
    if name not in __all__:
        raise AttributeError(f"module 'rvq.spark' has no attribute {name!r}")
    value = getattr(import_module(f"rvq.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
