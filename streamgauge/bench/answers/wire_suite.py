"""Asks an engine that reads the wire the queries of whole suites: each on a finite stream, once, to its end."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from streamgauge.base.errors import Outage, UserError
from streamgauge.base.schemas import NEXMARK
from streamgauge.base.units import PS, Duration
from streamgauge.bench import workloads
from streamgauge.bench.answers.finite_stream import SENTINEL_US, Events
from streamgauge.bench.answers.hard_queries import SPECS, longest_s, offered
from streamgauge.bench.answers.hard_queries import events as hard_events
from streamgauge.bench.answers.record import Late, judged, short
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.driver.figures import checked
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.driver.system import Adapter, Answering, TrialSetup, Unsupported, make_system, rules_of
from streamgauge.bench.oracle.batches import late_reported, logs_of
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.oracle.duck import answer, size_and_hash
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Query, Spec
from streamgauge.bench.workloads.nexmark.standard import standard
from streamgauge.config import Replay, System, Workload
from streamgauge.records.answers import Answer, HardAnswer
from streamgauge.records.driver import ReportBody
from streamgauge.records.rules import Rules
from streamgauge.records.trial import SystemFigures

#: slow enough for a watermark every few hundred rows, quick enough for a suite
RATE_EVENTS_PER_S = 10_000.0
PATIENCE_S = 60.0
LOOK_S = 0.02
#: memory of the driver; a stream that does not fit would be cut
MEMORY_MB = 4096
#: windows of the engine's own clock: the suite waits for them
CLOCK_WINDOW_US = 1_000_000


class _Unjudged(UserError):
    """A trial that does not judge the answer: it did not end, did not offer each event, or has unusable figures."""


@contextmanager
def started(system: System, work: Path) -> Iterator[Adapter]:
    """A system with its processes, for one query after the other. Raises UserError if it does not start."""
    made = make_system(system, work)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextmanager
def served(rows: pa.Table, columns: Mapping[str, str], work: Path) -> Iterator[Fleet]:
    """A driver process that offers these rows, in their order, to one trial after the other."""
    work.mkdir(parents=True)
    order = pa.array(range(rows.num_rows), pa.int64())
    names = ["seq", "event_time", *columns]
    pq.write_table(rows.select(names).append_column("ingestion_time", order), work / "part-0.parquet")
    manifest = {"files": ["part-0.parquet"], "tick": "ns", "columns": dict(columns)}
    (work / "manifest.json").write_text(json.dumps(manifest))
    with Fleet(work, Replay(max_memory_mb=MEMORY_MB), tick="ns", columns=dict(columns)) as fleet:
        yield fleet


def suite(queries: Iterable[Query]) -> list[Spec]:
    """The parameters with which the suite asks these queries over the wire."""
    specs = ((query, standard(query)) for query in queries)
    return [replace(spec, window_us=CLOCK_WINDOW_US) if query.by_clock else spec for query, spec in specs]


def run_over_wire(system: Adapter, events: Events, queries: Iterable[Query], work: Path) -> Iterator[Answer]:
    """Yields an answer in streaming to each query of the suite, asked of a started system.

    Raises Outage if the engine is gone.
    """
    with served(events.rows, NEXMARK, work / "stream") as fleet:
        for spec in suite(queries):
            columns = {name: NEXMARK[name] for name in workloads.find(spec.query).columns}
            yield asked(system, fleet, spec, columns, events.rows, work / spec.query)


def hard_over_wire(system: Adapter, count: int, percent: float, work: Path) -> Iterator[HardAnswer]:
    """Yields an answer in streaming to each hard query, on so many events; percent: of them, which come late."""
    rows = offered(hard_events(count, percent / 100, longest_s(count)))
    columns = {"name": "string", "amount": "int64"}
    with served(rows, columns, work / "stream") as fleet:
        for spec in SPECS:  # a workload's windows begin at multiples of their length
            answer = asked(system, fleet, replace(spec, offset_us=0), columns, rows, work / spec.query)
            yield HardAnswer(**answer.fields)


def asked(system: Adapter, fleet: Fleet, spec: Spec, columns: Mapping[str, str], rows: pa.Table, work: Path) -> Answer:
    """Asks one query, and compares the answer with DuckDB's by the system's own account and rule of lateness."""
    query = workloads.find(spec.query)
    if isinstance(system, Answering):
        system.keeps_answer = True
    began = time.monotonic()
    try:
        rules = rules_of(system, spec)
        figures, reports = _trial(system, fleet, spec, rules, columns, rows.num_rows, work)
        seconds = time.monotonic() - began
    except _Unjudged as problem:
        return _unchecked(query, None, time.monotonic() - began, rows.num_rows, str(problem))
    except UserError as problem:
        if not system.alive():
            raise Outage(f"{system.name} ended in the middle of {short(query)}: {system.failure}") from problem
        why = problem.why if isinstance(problem, Unsupported) else str(problem).rpartition(": ")[2]
        return Answer(query=short(query), mode="streaming", status="unsupported", why=why)
    reported = sum(body["rows"] for body in reports), sum(body.get("checksum") or 0 for body in reports) % 2**64
    if not (figures.get("batches") or figures.get("stretches")):
        why = str(figures.get("unchecked", "the engine gives no account of the rows that it took"))
        return _unchecked(query, reported[0], seconds, rows.num_rows, why)
    if not isinstance(system, Answering) and query.rule.kind not in ("exact", "bounded"):
        return _unchecked(
            query, reported[0], seconds, rows.num_rows, f"compared by {query.rule.kind}, which needs its rows"
        )
    try:
        due = expectation(rows, logs_of(figures), spec, rules)
    except ValueError as problem:  # the account lacks rows, or nobody knows the right answer
        return _unchecked(query, reported[0], seconds, rows.num_rows, str(problem))
    wanted = answer(due)
    kept, size = reported, None
    given = reported[0], f"{reported[1]:016x}"
    if isinstance(system, Answering):
        output = _table(system.answer(), wanted.schema)
        kept, size, given = (output.num_rows, checksum(output)), output.nbytes, size_and_hash(output, query.rule)
    late = Late(rules.late_counted, due.late, late_reported(figures, reports), due.wrong_watermark)
    wanted_size = size_and_hash(wanted, query.rule)
    verdict = judged(query, "streaming", given, wanted_size, seconds, rows.num_rows, late, size)
    if due.wrong_watermark is None and reported != kept:
        why = f"the reports measure other rows than the {kept[0]} that were kept"
        return verdict.model_copy(update={"status": "wrong", "why": why})
    return verdict


def _unchecked(query: Query, count: int | None, seconds: float, events: int, why: str) -> Answer:
    rate, seconds = round(events / seconds, 1), round(seconds, 3)
    return Answer(
        query=short(query),
        mode="streaming",
        status="unchecked",
        rows=count,
        seconds=seconds,
        events_per_s=rate,
        why=why,
    )


def _trial(
    system: Adapter, fleet: Fleet, spec: Spec, rules: Rules, columns: Mapping[str, str], count: int, work: Path
) -> tuple[SystemFigures, list[ReportBody]]:
    """Offers each event once; returns the system's figures and the bodies of its reports. Raises UserError."""
    attempt, query = uuid.uuid4().hex[:12], workloads.find(spec.query)
    setup = TrialSetup(attempt, fleet.endpoints, _workload(spec), dict(columns), fleet.tick, work, RATE_EVENTS_PER_S)
    with Connection(fleet.endpoints[0]) as talk:
        talk.open(
            attempt, RATE_EVENTS_PER_S, count / RATE_EVENTS_PER_S, beyond_us=max(SENTINEL_US, spec.beyond_us(rules))
        )
        system.begin_trial(setup)
        if not system.alive():
            raise UserError(str(system.failure))
        talk.start(time.time_ns())
        deadline = time.monotonic() + count / RATE_EVENTS_PER_S + PATIENCE_S
        while not talk.status()["finished"] and system.alive() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
        talk.stop()
        if query.by_clock:
            time.sleep(spec.window_us / 1e6 + 1)
        figures, unusable = checked(system.end_trial(PATIENCE_S), rules)
        seen = talk.observe()
    if unusable is not None:
        raise _Unjudged(unusable)
    if figures.get("failure"):
        raise UserError(str(figures["failure"]))
    if not figures.get("drained"):
        raise _Unjudged(f"it did not end within {PATIENCE_S:.0f} s")
    offered = sum(seen["offered"]) - 1
    if offered != count:
        raise _Unjudged(f"{offered} of {count} events were offered")
    return figures, [report["body"] for report in seen["reports"]]


def _workload(spec: Spec) -> Workload:
    def span(us: int) -> Duration:
        return Duration(us * PS["us"])

    return Workload(
        name="asked",
        query=spec.query,
        key=spec.key,
        value=spec.value,
        window=span(spec.window_us),
        slide=None if spec.slide_us is None else span(spec.slide_us),
        watermark=span(spec.watermark_ms * 1000),
        mark=spec.mark,
        top=spec.top,
    )


def _table(columns: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    """The rows with the types of DuckDB's answer; times come as microseconds."""
    made = {}
    for name, values in columns.items():
        known = schema.field(name).type if name in schema.names else None
        if known is not None and pa.types.is_timestamp(known):
            made[name] = pa.array(values, pa.int64()).cast(pa.timestamp("us", known.tz))
        else:
            made[name] = pa.array(values, known)
    return pa.table(made)
