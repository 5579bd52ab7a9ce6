"""Makes a finite Nexmark stream: the usual stages generate and disorder it; it is cut into micro-batches here."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streamgauge.base.schemas import NEXMARK
from streamgauge.base.units import Tick
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.engines.spark.finite import with_sentinel
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Benchmark, Experiment, parse
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked

#: seconds of event time over which events are spread, whatever their number: ten windows of the suite
SPAN_S = 100
#: longest delay of an event; it spans several micro-batches, so that some events come too late
LONGEST_DELAY_S = 60
#: distance of the sentinel from the last event: beyond the end of the longest window, which is a day
SENTINEL_US = 3 * 86_400 * 1_000_000


@dataclass(frozen=True)
class Events:
    """Events of a stream. rows: the wire's columns, with wall times 0, and partition and row for the oracle."""

    rows: pa.Table

    @property
    def plain(self) -> pa.Table:
        return self.rows.drop_columns(["partition", "row"])

    def batches(self, count: int) -> list[pa.Table]:
        """Cuts the events into `count` micro-batches of equal size; the last one ends with the sentinel."""
        plain = self.plain
        size = -(-plain.num_rows // count)
        latest = plain["event_time"].to_numpy().max() // 1000
        *slices, last = [plain.slice(first, size) for first in range(0, plain.num_rows, size)]
        return [*slices, pa.concat_tables([last, with_sentinel(plain, int(latest) + SENTINEL_US)])]


def benchmark(events: int, seed: int, disorder: float) -> Benchmark:
    """Benchmark of a Nexmark stream with `disorder` percent out of order. Raises UserError for impossible numbers."""
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
    """Copy of a benchmark with at most this many events, over the same event time, and only this experiment.

    The disorder is the closest to the experiment's target that these events allow.
    """
    given = wanted.source.nexmark
    assert given is not None
    share = min(1.0, events / given.events)
    rates = {name: max(1, round(rate * share)) for name in ("rate", "next_rate") if (rate := getattr(given, name))}
    fewer = given.model_copy(update={"events": round(given.events * share), **rates})
    source = wanted.source.model_copy(update={"nexmark": fewer})
    closest = experiment.model_copy(update={"on_infeasible": "closest"})
    return wanted.model_copy(update={"source": source, "experiments": (closest,), "scale": 1.0})


def make_events(store: Store, wanted: Benchmark) -> Events:
    ingest.run(Forked(), wanted, store)
    stream = generate.run(Forked(), wanted, store, wanted.experiments[0])
    return read_events(stream, wanted.source.tick)


def read_events(stream: Artifact, tick: Tick) -> Events:
    """Reads the events of a stream artifact, in the order of ingestion."""
    loaded = load_stream(stream.files(), tick, dict(NEXMARK), max_memory_mb=4096)
    return Events(offered_rows(loaded, [[loaded.table.num_rows]]))
