from rvq.spark.source import RvqDataSource as DefaultSource  # noqa: F401  Spark looks for it here by this name.
