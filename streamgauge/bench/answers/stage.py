"""The stage nexmark: runs the suite on an experiment's stream, and the hard queries, in batch and in streaming."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from streamgauge.base.errors import UserError
from streamgauge.bench.answers.ask_systems import ask, unanswered
from streamgauge.bench.answers.figures import results_of
from streamgauge.bench.answers.finite_stream import Events, make_events, read_events, smaller
from streamgauge.bench.answers.hard_queries import record_of, run_example, run_hard
from streamgauge.bench.answers.nexmark_suite import chosen, run_suite
from streamgauge.bench.answers.record import keep, keep_hard, short
from streamgauge.bench.answers.systems import asked, conf, foreign, over_wire
from streamgauge.bench.answers.wire_suite import hard_over_wire, run_over_wire, started
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.workloads import Query
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Experiment, System
from streamgauge.records.answers import MODES, Answer, AnswerLine, HardAnswer
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.result import Result
from streamgauge.streams.keys import stream_key

log = logging.getLogger("streamgauge")
#: events of a stream: for hard queries on the first system; for hard queries and the suite on the others
HARD, FEW_HARD, FEW = 400, 100, 5_000


def run(
    spark: SparkSession, benchmark: Benchmark, store: Store, experiment: Experiment, directory: Path
) -> dict[str, int]:
    """Runs all queries, writes their rows to the run's directory as they come, and records the results.

    The first system is asked on the experiment's stream. The others are asked for the capability matrix alone: on fewer
    events, and only in the experiment with the most disorder. Those with a Spark or Python of their own run in a
    process of their own, and are asked only the suite's queries. Those that read the wire are asked only in streaming.

    Returns how many of the first system's rows have each status. Raises UserError unless all are correct.
    """
    stream = store.need("stream", stream_key(store, benchmark, experiment), "generate")
    events, made = read_events(stream, benchmark.source.tick), stream.read(StreamManifest)
    percent = made.out_of_order_percent
    first, *others = asked(benchmark)
    elsewhere, wired = foreign(benchmark), over_wire(benchmark)
    queries = chosen(",".join(benchmark.suite.queries or ["all"]))
    statuses: Counter[str] = Counter()
    bad: list[str] = []
    figures: list[Result] = []

    def tell(system: System, events: int, answer: Answer, software: Mapping[str, str] | None = None) -> None:
        why = answer.why or ""
        log.info("%s in %s on %s: %s %s", answer.query, answer.mode, system.name, answer.status, why)
        keep(directory, AnswerLine(**answer.fields, system=system.name, disorder_percent=percent, events=events))
        timed = system == first and answer.query in map(short, queries)  # the others' streams are too short
        figures.extend(
            results_of(benchmark, experiment, system.name, directory.name, answer, events, software or {}, timed=timed)
        )
        if system == first:
            statuses[answer.status] += 1
            if answer.status != "correct":
                bad.append(f"{answer.query} in {answer.mode} is {answer.status}")

    with tempfile.TemporaryDirectory(prefix="streamgauge-nexmark-") as place:
        work = Path(place)
        hard: list[HardAnswer] = []
        for count, answer in _in_session(spark, first, percent, queries, events, HARD, work / "first"):
            tell(first, count, answer)
            if isinstance(answer, HardAnswer):
                hard.append(answer)
        keep_hard(directory, record_of(first.name, HARD, percent, hard, run_example(spark, work / "example")))
        if experiment != max(benchmark.experiments, key=lambda one: one.target_percent or 0):
            others, elsewhere, wired = [], (), ()
        if others or elsewhere or wired:
            few = make_events(Store(work / "few"), smaller(benchmark.source, experiment, FEW))
        for system in others:
            for count, answer in _in_session(spark, system, percent, queries, few, FEW_HARD, work / system.name):
                tell(system, count, answer)
        for system in elsewhere:
            answers = ask({system.name: system}, [short(query) for query in queries], few, work / f"own-{system.name}")
            for one in answers[system.name]:
                tell(system, few.rows.num_rows, one, one.versions)
            for missing in unanswered(answers[system.name], list(map(short, queries))):
                tell(system, few.rows.num_rows, missing)
        for other in wired:
            with started(other.model_copy(update={"cpus": None}), work / f"wired-{other.name}") as engine:
                for answer in run_over_wire(engine, few, queries, work / f"asked-{other.name}"):
                    tell(other, few.rows.num_rows, answer)
                for answer in hard_over_wire(engine, FEW_HARD, percent, work / f"hard-{other.name}"):
                    tell(other, FEW_HARD, answer)
    for figure in figures:  # all at the end, so that a retried stage records none twice
        results.append(directory, figure)
    if bad:
        raise UserError(f"{experiment.name}: {len(bad)} of {sum(statuses.values())} answers: {', '.join(bad)}")
    return dict(statuses)


def _in_session(
    spark: SparkSession,
    system: SparkSettings,
    percent: float,
    queries: Sequence[Query],
    events: Events,
    hard_events: int,
    work: Path,
) -> Iterator[tuple[int, Answer]]:
    """Yields the answer to each query in both modes, with the number of events that it was asked on."""
    settings = {**conf(system), "spark.sql.shuffle.partitions": "2"}
    for mode in MODES:
        for answer in run_suite(spark, events, queries, mode, work / mode, conf=settings):
            yield events.rows.num_rows, answer
    for answer in run_hard(spark, hard_events, percent, work / "hard", settings):
        yield hard_events, answer
