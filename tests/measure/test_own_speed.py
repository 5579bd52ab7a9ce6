"""Compares the loss at a stream's own speed with the oracle of trials, which counts from an engine's logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.base.units import Duration
from streamgauge.bench.driver.system import make_system, rules_of
from streamgauge.bench.engines.flink.settings import FlinkSettings
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.known.settings import KnownSettings
from streamgauge.bench.engines.spark.engine import GLOBAL_WATERMARK
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.measure import own_speed as module
from streamgauge.bench.oracle.batches import BatchLog
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import REGISTRY, Spec, find
from streamgauge.catalog.artifacts import Artifact
from streamgauge.config import System, Workload
from streamgauge.records.loss import Loss
from streamgauge.records.rules import Operator, Pace, Rules
from tests import manifests

SPARK = SparkSettings(name="s")
FLINK = FlinkSettings(name="f", engine="flink")
COLUMNS = {"name": "string", "amount": "int64", "kind": "string"}
EVENTS, NS = 3000, 10**9


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """Twenty events a second, of which a tenth comes up to 40 s late."""
    draw, place = np.random.default_rng(3), tmp_path_factory.mktemp("stream")
    event = 10_000 * NS + np.arange(EVENTS) * NS // 20
    arrival = event + np.where(draw.random(EVENTS) < 0.1, draw.integers(0, 40 * NS, EVENTS), 0)
    arrival = np.minimum(arrival, event[-1])
    order = np.argsort(arrival, kind="stable")
    table = pa.table(
        {
            "ingestion_time": arrival[order],
            "event_time": event[order],
            "seq": np.arange(EVENTS)[order],
            "name": pa.array([None if n == 0 else f"k{n}" for n in draw.integers(0, 40, EVENTS)], pa.string()),
            "amount": draw.integers(0, 9, EVENTS),
            "kind": pa.array(draw.choice(["f", "g"], EVENTS), pa.string()),
        }
    )
    files = ["part-0.parquet", "part-1.parquet"]
    for file, part in zip(files, (table.slice(0, 1111), table.slice(1111)), strict=True):
        pq.write_table(part, place / file)
    return Artifact("stream", "key", place, manifests.of_stream(files=files, columns=COLUMNS, events=EVENTS))


def asked(query: str, slide: str | None = None) -> Workload:
    needs = find(query).needs
    value = None if "value" not in needs else "kind" if "mark" in needs else "amount"
    raw = {"name": "w", "query": query, "window": "10s", "slide": slide}
    raw |= {"watermark": "10s" if find(query).needs_watermark else "3s", "value": value}
    raw |= {"key": "name" if "key" in needs else None, "mark": "f" if "mark" in needs else None}
    return Workload.model_validate({key: given for key, given in raw.items() if given is not None})


def declared(system: System, workload: Workload) -> tuple[Spec, Rules]:
    """The parameters of a query, and the rules that an adapter declares for it before anything starts."""
    spec = Spec.of(workload, COLUMNS, whole=True)
    return spec, rules_of(make_system(system, Path()), spec)


def own_speed(stream: Artifact, workload: Workload, system: System) -> Loss:
    return module.own_speed(stream, *declared(system, workload))


def by_the_oracle(stream: Artifact, spec: Spec, interval_ns: int, rules: Rules) -> int:
    """The oracle's count of events in no window, from the log of an engine whose batches have that interval."""
    table = pa.concat_tables([pq.read_table(file) for file in stream.files()])
    event_us = table["event_time"].to_numpy() // 1000
    batch = table["ingestion_time"].to_numpy() // interval_ns
    ends = [int(end) for end in np.append(np.flatnonzero(np.diff(batch)) + 1, len(batch))]
    assert batch[-1] - batch[0] + 1 == len(ends), "each interval has an event, so that batches are intervals"
    marks = [rules.begins_ms, *(int(event_us[:end].max()) // 1000 - spec.watermark_ms for end in ends[:-1])]
    logs = [
        BatchLog(n, ({0: end},) * find(spec.query).streams, mark)
        for n, (end, mark) in enumerate(zip(ends, marks, strict=True))
    ]
    rows = table.append_column("event_ts", pa.array(event_us).view(pa.timestamp("us", tz="UTC")))
    rows = rows.append_column("partition", pa.array(np.zeros(EVENTS, np.int64)))
    found = expectation(rows.append_column("row", pa.array(np.arange(EVENTS))), logs, spec, rules)
    assert found.wrong_watermark is None
    return found.late_events


QUERIES = [(query.name, None) for query in REGISTRY] + [("windowed_aggregation", "2s"), ("windowed_join", "5s")]


@pytest.mark.parametrize(("query", "slide"), QUERIES)
@pytest.mark.parametrize("system", [SPARK, FLINK], ids=lambda system: system.engine)
def test_the_oracle_counts_as_many_where_a_trial_has_the_streams_own_speed(
    stream: Artifact, query: str, slide: str | None, system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE_ROWS", 500)
    workload = asked(query, slide)
    found, (spec, rules) = own_speed(stream, workload, system), declared(system, workload)
    wanted = by_the_oracle(stream, spec, 1000 * rules.pace.interval_us, rules)
    assert found.events == wanted
    assert bool(wanted) == (find(query).late != "never")
    assert (found.partly > found.events) == (slide is not None or find(query).spans > 1)


def test_each_engine_declares_its_rules_before_anything_starts() -> None:
    workload, window, delay_us = asked("windowed_aggregation"), Operator("window", 10_000_000, 10_000_000), 3_000_000
    known = KnownSettings(name="k", engine="known")
    job = JobSettings(name="j", engine="job", command=("x",), bootstrap="h:1")
    assert [declared(system, workload)[1] for system in (SPARK, FLINK, known, job)] == [
        Rules(
            (window,), delay_us, "all queues", Pace("micro-batch", 1_000_000, behind=2, step_us=1000),
            equal_is_late=True, joins_first=False, begins_ms=0, late_counted="groups",
        ),
        Rules(
            (window,), delay_us, "least queue", Pace("interval", 200_000, step_us=1000),
            late_counted="events in no window",
        ),
        Rules((window,), delay_us, late_counted="none"),
        Rules((replace(window, kind="never"),), late_counted="none"),
    ]  # fmt: skip
    shared = SPARK.model_copy(update={"conf": GLOBAL_WATERMARK})
    assert declared(shared, workload)[1].pace == Pace("micro-batch", 1_000_000, behind=1, step_us=1000)


def test_the_trigger_is_the_interval_of_micro_batches(stream: Artifact) -> None:
    slow = SPARK.model_copy(update={"trigger": Duration.parse("30s")})
    found = own_speed(stream, asked("windowed_aggregation"), slow)
    assert found.cadence == "a micro-batch every 30 s"
    assert found.events < own_speed(stream, asked("windowed_aggregation"), SPARK).events


def test_a_job_may_lose_what_it_declares_whatever_the_query(stream: Artifact) -> None:
    raw = {"name": "j", "engine": "job", "command": ["x"], "bootstrap": "h:1", "answer": {"lateness": "20s"}}
    found = own_speed(stream, asked("passthrough"), JobSettings.model_validate(raw))
    table = pa.concat_tables([pq.read_table(file) for file in stream.files()])
    event = table["event_time"].to_numpy()
    late = np.maximum.accumulate(event) - event > 20 * NS
    assert found == Loss(int(late.sum()), EVENTS, "tolerance", "a watermark after each event", int(late.sum()))
    assert "the job may lose" in found.sentence
    del raw["answer"]
    assert own_speed(stream, asked("windowed_aggregation"), JobSettings.model_validate(raw)).rule == "never"
