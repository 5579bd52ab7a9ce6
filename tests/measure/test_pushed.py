"""A search's metrics in a real Graphite: the stored series are what the trials' records say."""

from __future__ import annotations

from itertools import accumulate, groupby
from pathlib import Path

from streamgauge.metrics.pipeline import Pipeline
from tests.measure.benches import write_bench
from tests.measure.test_stages import QUICK, run_search
from tests.metrics.backend import wait_until
from tests.metrics.carbon import carbon


def test_what_graphite_stores_of_a_search_is_what_its_trials_record(tmp_path: Path) -> None:
    (tmp_path / "carbon").mkdir()
    with carbon(tmp_path / "carbon") as daemon:
        sink = {"type": "graphite", "host": "127.0.0.1", "port": daemon.port}
        bench = write_bench(
            tmp_path, capacity=40_000, batch_cost="50ms", search=QUICK, metrics={"sinks": [sink], "period": "500ms"}
        )
        with Pipeline(bench.benchmark.metrics, bench.benchmark.name).start():
            found, _, trials = run_search(bench)

        def stored(kind: str, name: str, value: str = "value") -> list[float]:
            return daemon.series(f"streamgauge.b.e_all_known.{kind}.trial.{name}.committed.{value}")

        wait_until(lambda: stored("counter", "trials")[-1:] == [found["trials"]], "the last push")
    assert len(trials) == found["trials"] > 1
    for name in ("offered", "taken"):
        totals = list(accumulate(trial["observation"][name] for trial in trials))
        assert [value for value, _ in groupby(stored("counter", f"events_{name}"))] == totals
        assert stored("gauge", name)[-1] == trials[-1]["observation"][name]
    last = trials[-1]["observation"]
    assert stored("gauge", "backlog")[-1] == last["offered"] - last["taken"]
    assert stored("gauge", "rate_events_per_s")[-1] == last["rate_events_per_s"]
    latencies = [trial["details"]["event_latency_ns"] for trial in trials]
    assert stored("distribution", "event_latency_ns", "count")[-1] == sum(one["count"] for one in latencies)
    assert stored("distribution", "event_latency_ns", "max")[-1] == max(one["max"] for one in latencies)
