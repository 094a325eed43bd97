"""Spark: journals as tables and streams, labels as sinks, and the jobs on them. `pip install rvq[spark]`.

Once that is installed, `spark.read.format("rvq")` works by itself; nothing here need be imported for it.
"""

from __future__ import annotations
