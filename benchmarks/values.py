"""Measures what formats of Kafka's values cost: CPU µs of a value to be made of a row, and to be read as a line.

    .venv/bin/python -m benchmarks.values [--rows 200000] [--repetitions 5]

Rows have two texts and two numbers, as flights have. Each figure is the median of the repetitions, on one core.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from streamgauge.bench.driver.replay import wire_schema
from streamgauge.streams.kafka import schemas
from streamgauge.streams.kafka.avro import reader
from streamgauge.streams.kafka.encoded import Encoded, Prefixed
from streamgauge.streams.kafka.records import maker
from streamgauge.streams.kafka.registry import Registry, Schema
from streamgauge.streams.kafka.values import Decoder, decoder_of

COLUMNS = {"carrier": "string", "origin": "string", "flight": "int64", "distance": "float64"}
BATCH = 5_000
EVENT_NS = 1_356_998_400_000_000_000


class Known(Registry):
    """A registry without a network, which has one schema."""

    def __init__(self, text: str) -> None:
        self._text = text

    def schema(self, number: int) -> Schema:  # noqa: ARG002 - there is but one
        return Schema("AVRO", self._text)


def batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Rows as the wire has them."""
    schema, draw = wire_schema(COLUMNS, line=False), np.random.default_rng(1)
    for begin in range(0, rows, BATCH):
        seq = np.arange(begin, min(begin + BATCH, rows))
        count, times = len(seq), EVENT_NS + seq * 1_000_000
        texts = {name: np.array(["AA", "UA", "B6"])[draw.integers(0, 3, count)] for name in ("carrier", "origin")}
        numbers = {"flight": draw.integers(0, 10_000, count), "distance": draw.random(count) * 3000}
        own = {"seq": seq, "event_time": times, "event_ts": times // 1000, "sentinel": np.zeros(count, bool)}
        given = {**own, "ingestion_time": times, "offered_wall": times, "event_wall": times, **texts, **numbers}
        arrays = [pa.array(given[field.name], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


Batch = TypeVar("Batch")


def cpu_us(work: Callable[[Batch], object], batches: Sequence[Batch], values: int, repetitions: int) -> float:
    """CPU µs a value to do the work of all batches, the median of the repetitions."""
    seconds = []
    for _ in range(repetitions):
        began = time.process_time()
        for batch in batches:
            work(batch)
        seconds.append(time.process_time() - began)
    return statistics.median(seconds) / values * 1e6


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    rows = list(batches(given.rows))
    avro = json.dumps(schemas.avro_schema(rows[0].schema))
    decoders: dict[str, Decoder] = {
        "json": decoder_of("json"),
        "confluent-json": Encoded(Prefixed("JSON", Known(""))),
        "avro": Encoded(reader(avro)),
        "confluent-avro": Encoded(Prefixed("AVRO", Known(avro))),
    }
    table = Table("format", "bytes a value", "made (CPU-µs)", "read (CPU-µs)", "read on a core (values/s)")
    for name, decoder in decoders.items():
        make = maker(name, rows[0].schema, schema_id=7 if name.startswith("confluent") else None)
        made = cpu_us(make, rows, given.rows, given.repetitions)
        values = [make(batch) for batch in rows]
        read = cpu_us(decoder.lines, values, given.rows, given.repetitions)
        size = sum(len(value) for some in values for value in some) / given.rows
        table.add_row(name, f"{size:.0f}", f"{made:.2f}", f"{read:.2f}", f"{1e6 / read:,.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
