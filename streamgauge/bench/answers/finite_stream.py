"""Makes a finite Nexmark stream: the usual stages generate and disorder it; it is cut into micro-batches here."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from streamgauge.base.schemas import NEXMARK
from streamgauge.base.units import Tick
from streamgauge.bench.driver.replay import load_stream, offered_rows
from streamgauge.bench.engines.spark.finite import with_sentinel
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.config import Experiment, Source, parse
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked

#: seconds of event time over which events are spread, whatever their number: ten windows of the suite
SPAN_S = 100
#: longest delay of an event; it spans several micro-batches, so that some events come too late
LONGEST_DELAY_S = 60
#: distance of the sentinel from the last event: beyond the end of the longest window, which is a day
SENTINEL_US = 3 * 86_400 * 1_000_000


@dataclass(frozen=True, kw_only=True)
class Wanted(Scaled):
    """A stream that is to be made: a source, and an experiment on it."""

    experiment: Experiment


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


def wanted_stream(events: int, seed: int, disorder: float) -> Wanted:
    """A Nexmark stream with `disorder` percent out of order. Raises UserError for impossible numbers."""
    settings = {"events": events, "seed": seed, "rate": max(1, events // SPAN_S)}
    delay = {"max": f"{LONGEST_DELAY_S}s"}
    experiment = {"name": "disorder", "target_percent": disorder, "delay": delay, "seed": seed}
    source = parse(Source, {"format": "nexmark", "nexmark": settings}, "nexmark: source")
    return Wanted(source, experiment=parse(Experiment, experiment, "nexmark: experiment"))


def smaller(source: Source, experiment: Experiment, events: int) -> Wanted:
    """A stream of at most this many events, over the same event time.

    The disorder is the closest to the experiment's target that these events allow.
    """
    given = source.nexmark
    assert given is not None
    share = min(1.0, events / given.events)
    fewer = {
        "events": round(given.events * share),
        "rate": max(1, round(given.rate * share)),
        "next_rate": None if given.next_rate is None else max(1, round(given.next_rate * share)),
    }
    fewer_events = source.model_copy(update={"nexmark": given.model_copy(update=fewer)})
    return Wanted(fewer_events, experiment=experiment.model_copy(update={"on_infeasible": "closest"}))


def make_events(store: Store, wanted: Wanted) -> Events:
    ingest.run(Forked(), wanted, store)
    stream = generate.run(Forked(), wanted, store, wanted.experiment)
    return read_events(stream, wanted.source.tick)


def read_events(stream: Artifact, tick: Tick) -> Events:
    """Reads the events of a stream artifact, in the order of ingestion."""
    loaded = load_stream(stream.files(), tick, dict(NEXMARK), max_memory_mb=4096)
    return Events(offered_rows(loaded, [[loaded.table.num_rows]]))
