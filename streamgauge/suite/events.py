"""A finite Nexmark stream: generated, disordered as wished by the usual stages, and cut into micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from streamgauge.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Experiment, parse
from streamgauge.driver.replay import load_stream, offered_rows
from streamgauge.link.finite import with_sentinel
from streamgauge.schemas import NEXMARK
from streamgauge.spark import generate, ingest
from streamgauge.units import Tick

#: events are spread over so many seconds, whatever their number: ten windows of the suite
SPAN_S = 100
#: of the delays of events out of order; several micro-batches, so that some come too late
LONGEST_DELAY_S = 60
#: beyond the longest window, a day, and its end
SENTINEL_US = 3 * 86_400 * 1_000_000


@dataclass(frozen=True)
class Events:
    """rows: the wire's columns, and partition, row, which the oracle wants; walls are 0."""

    rows: pa.Table

    @property
    def plain(self) -> pa.Table:
        return self.rows.drop_columns(["partition", "row"])

    def batches(self, count: int) -> list[pa.Table]:
        """So many of equal size, and the sentinel."""
        plain = self.plain
        size = -(-plain.num_rows // count)
        latest = plain["event_time"].to_numpy().max() // 1000
        slices = [plain.slice(first, size) for first in range(0, plain.num_rows, size)]
        return [*slices, with_sentinel(plain, int(latest) + SENTINEL_US)]


def benchmark(events: int, seed: int, disorder: float) -> Benchmark:
    """Raises UserError for numbers that cannot be."""
    raw = {
        "name": "nexmark",
        "source": {
            "format": "nexmark",
            "nexmark": {"events": events, "seed": seed, "rate": max(1, events // SPAN_S)},
        },
        "experiments": [
            {
                "name": "disorder",
                "target_percent": disorder,
                "delay": {"max": f"{LONGEST_DELAY_S}s"},
                "seed": seed,
            }
        ],
    }
    return parse(Benchmark, raw, "nexmark")


def smaller(wanted: Benchmark, experiment: Experiment, events: int) -> Benchmark:
    """The same with at most so many events, over the same time, and only this experiment, as near as they allow."""
    given = wanted.source.nexmark
    assert given is not None
    share = min(1.0, events / given.events)
    rates = {name: max(1, round(rate * share)) for name in ("rate", "next_rate") if (rate := getattr(given, name))}
    fewer = given.model_copy(update={"events": round(given.events * share), **rates})
    source = wanted.source.model_copy(update={"nexmark": fewer})
    closest = experiment.model_copy(update={"on_infeasible": "closest"})
    return wanted.model_copy(update={"source": source, "experiments": (closest,), "scale": 1.0})


def make_events(spark: SparkSession, store: Store, wanted: Benchmark) -> Events:
    ingest.run(spark, wanted, store)
    stream = generate.run(spark, wanted, store, wanted.experiments[0])
    return read_events(stream, wanted.source.tick)


def read_events(stream: Artifact, tick: Tick) -> Events:
    """Of a stream artifact, in the order of ingestion."""
    loaded = load_stream(stream.files(), tick, dict(NEXMARK), max_memory_mb=4096)
    return Events(offered_rows(loaded, [[loaded.table.num_rows]]))
