"""`format("rvq")`: what Spark asks when a query is planned. Owns nothing but who answers."""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from rvq.errors import SparkError
from rvq.spark.columns import arrow_schema, check_schema, default_schema
from rvq.spark.options import ReadOptions, read_options
from rvq.spark.reader import BatchReader, StreamReader
from rvq.spark.sink import BatchWriter, StreamWriter, write_options


class RvqDataSource(DataSource):
    """Journals as tables, and labels as sinks."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self.options = options  # looked up without regard to case, so not as a dict

    @classmethod
    def name(cls) -> str:
        return "rvq"

    def schema(self) -> StructType:
        return default_schema(self._reading(streaming=False, lenient=True))

    def _reading(self, *, streaming: bool, lenient: bool = False) -> ReadOptions:
        given = dict(self.options.items())
        if lenient:  # asked before it is known whether this is a stream
            given = {name: text for name, text in given.items() if name.lower() in ("rows", "includeheaders")}
            given["path"] = "."
        return read_options(given, streaming=streaming)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self._reading(streaming=False)
        return BatchReader(options, arrow_schema(check_schema(schema, options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        options = self._reading(streaming=True)
        return StreamReader(options, arrow_schema(check_schema(schema, options)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise SparkError("a label cannot be overwritten: write with .mode('append')")
        return BatchWriter(write_options(dict(self.options.items()), streaming=False), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return StreamWriter(write_options(dict(self.options.items()), streaming=True), schema)
