"""Counts what the cells of a benchmark lose at their streams' own speed, as far as the streams are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.records.loss import Loss
from streamgauge.records.manifests import StreamManifest
from streamgauge.streams.keys import stream_key

#: most events of a stream that `check` counts, in less than a second a cell but for sessions; runs count all
MOST_EVENTS = 5_000_000


def of_cells(benchmark: Benchmark, store: Store) -> dict[str, Loss]:
    """The loss of each cell by name; without those whose stream is not built, or is too large to be read here.

    An engine that is code of the user's own is left out, too: a check does not run it.
    """
    from streamgauge.bench.driver.system import make_system, rules_of
    from streamgauge.bench.measure.own_speed import own_speed
    from streamgauge.bench.workloads import Spec

    lost: dict[str, Loss] = {}
    for cell in benchmark.all_cells():
        stream = store.find("stream", stream_key(store, benchmark, benchmark.experiment(cell.experiment)))
        system = benchmark.system(cell.system)
        if system.adapter and stream is not None and (manifest := stream.read(StreamManifest)).events <= MOST_EVENTS:
            spec = Spec.of(benchmark.workload(cell.workload), manifest.columns, whole=True)
            rules = rules_of(make_system(system, Path()), spec)
            queues = benchmark.replay.partitions, system.partition_by
            lost[cell.name] = own_speed(stream, spec, rules, *queues)
    return lost


def lines(lost: Mapping[str, Loss]) -> Iterator[str]:
    """Yields a line for each cell that may lose an event."""
    for name, loss in lost.items():
        if loss.rule != "never":
            yield f"{name}: {loss.sentence}"
