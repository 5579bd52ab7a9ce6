"""Lines of a night's report on what the run's stages left: failures, and delays that a stream has outgrown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from streamgauge.bench.measure import advice
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark
from streamgauge.records.night import NightLine
from streamgauge.streams.advice import words


def failures(run: Path, missing: Sequence[str]) -> Iterator[NightLine]:
    """Yields a line for each stage that failed. missing: those that left no record."""
    last = {(one.stage, *one.scope.values()): one for one in RunLog(run).stages() if one.stage != "regressions"}
    failed = {name: stage for name, stage in last.items() if stage.state != "done"}
    for name, stage in failed.items():
        yield NightLine("failed", " ".join(name), stage.error or "did not finish")
    if not failed:  # otherwise they are missing because of the failed ones
        yield from (NightLine("failed", name, "never started") for name in missing)


def outgrown(benchmark: Benchmark, store: Store, run: Path) -> Iterator[NightLine]:
    """Yields a line for each workload whose watermark kept its promise earlier in the stream, and keeps it no longer.

    Raises Damaged.
    """
    log = RunLog(run)
    for workload in benchmark.workloads if benchmark.advice is not None else ():
        last = log.latest("advice", workload=workload.name)
        artifact = store.find("advice", last.key) if last is not None and last.key else None
        if artifact is not None and words.has_outgrown(its_advice := advice.of(artifact)):
            yield NightLine("outgrown", workload.name, words.of_workload(its_advice))
