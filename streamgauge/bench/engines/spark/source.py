"""Spark's streaming source: offsets are row numbers per queue, rows come as Arrow record batches over the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from streamgauge.bench.driver.client import Connection, RefusedError, WireError
from streamgauge.bench.driver.system import Endpoint
from streamgauge.bench.engines.spark.connections import connection, endpoints_of, once_more

Offsets = dict[str, int]  # global partition number (text, as JSON requires) -> next row


class Link(DataSource):
    """The source as a data source of Spark.

    Options: those of `options_of`; columns (DDL; default: as the driver says); batch_rows (default: no
    limit); role: `alone`; where a query reads the stream more than once, `lead` for one reader, `follow` for others.
    """

    @classmethod
    def name(cls) -> str:
        return "streamgauge"

    def schema(self) -> StructType | str:
        if columns := self.options.get("columns"):
            return columns
        endpoint = endpoints_of(self.options)[0]
        return from_arrow_schema(connection(endpoint, self.options.get("attempt", "")).schema, False)

    def streamReader(self, schema: StructType) -> Reader:
        return Reader(dict(self.options), schema)


@dataclass
class Range(InputPartition):
    """Rows [start, end) of one queue."""

    endpoint: Endpoint
    queue: int
    start: int
    end: int


class Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches and reads their rows. It is pickled into every task, so it holds no connection.

    Rows are freed when Spark asks for the latest offset: the batch that ended at `start` is then done. Spark's own
    commit comes only with the next batch, which may never come.

    Two readers of one stream plan at different instants, so neither may free what the other still needs. Therefore
    only the lead frees, and one call later. That is enough, as every batch of one reader ends after the other's
    previous batch, if both have the same quota per queue.
    """

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._endpoints = endpoints_of(options)
        self._attempt = options.get("attempt", "")
        self._batch_rows = int(options["batch_rows"]) if "batch_rows" in options else None
        self._role = options.get("role", "alone")
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._queues: list[tuple[int, int]] | None = None  # global partition -> endpoint, its queue
        self._asked: Offsets = {}
        self._freed: Offsets = {}
        self._planned: Offsets = {}
        self._target: Offsets | None = None

    def initialOffset(self) -> Offsets:
        return {str(partition): 0 for partition in range(len(self._map()))}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._batch_rows is None else ReadMaxRows(self._batch_rows)

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        self._free(start if self._role == "alone" else self._asked)
        self._asked = start
        # an equal and fixed share for each queue: see the class
        quota = max(1, limit.max_rows // len(start)) if isinstance(limit, ReadMaxRows) else None
        end = {}
        for partition, row in (self._target or self._offered()).items():
            begin = start.get(partition, 0)
            end[partition] = max(begin, row if quota is None else min(row, begin + quota))
        if end != start:
            self._plan(end)
        return end

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._offered()

    def partitions(self, start: Offsets, end: Offsets) -> list[Range]:
        self._plan(end)  # not planned yet after a restart
        queues = self._map()
        ranges = []
        for partition, last in end.items():
            first = start.get(partition, 0)
            endpoint, queue = queues[int(partition)]
            if first < last:
                ranges.append(Range(self._endpoints[endpoint], queue, first, last))
        return ranges

    def read(self, partition: Range) -> Iterator[pa.RecordBatch]:
        names = self._schema.names
        start = partition.start
        for last_try in (False, True):
            wire = connection(partition.endpoint, self._attempt)
            try:
                for batch in wire.read(partition.queue, start, partition.end):
                    start += batch.num_rows
                    yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=self._schema)
                return
            except RefusedError:
                raise
            except WireError:
                if last_try:
                    raise

    def _map(self) -> list[tuple[int, int]]:
        if self._queues is None:
            counts = [once_more(e, self._attempt, lambda wire: wire.partitions) for e in self._endpoints]
            self._queues = [(number, queue) for number, count in enumerate(counts) for queue in range(count)]
        return self._queues

    def _offered(self) -> Offsets:
        rows = [row for e in self._endpoints for row in once_more(e, self._attempt, lambda wire: wire.latest()).rows]
        return {str(partition): row for partition, row in enumerate(rows)}

    def _plan(self, end: Offsets) -> None:
        if end != self._planned and self._role != "follow":
            self._tell(Connection.planned, end)
        self._planned = end

    def _free(self, done: Offsets) -> None:
        if done != self._freed and any(done.values()) and self._role != "follow":
            self._tell(Connection.commit, done)
        self._freed = done

    def _tell(self, say: Callable[..., None], offsets: Offsets) -> None:
        each: dict[int, dict[int, int]] = {}
        for partition, row in offsets.items():
            endpoint, queue = self._map()[int(partition)]
            each.setdefault(endpoint, {})[queue] = row
        for endpoint, rows in each.items():
            once_more(self._endpoints[endpoint], self._attempt, partial(say, offsets=rows))
