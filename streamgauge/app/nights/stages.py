"""Lines of a night's report on what its stages left: failures, wrong answers, missing figures, outgrown delays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from streamgauge.app.nights.reruns import Subject, is_rerun
from streamgauge.app.nights.series import Series
from streamgauge.base.errors import Damaged
from streamgauge.base.words import first_of
from streamgauge.bench.answers import functional
from streamgauge.bench.measure import advice
from streamgauge.bench.measurements.soak.record import Followed, SoakRun
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, Cell
from streamgauge.records.night import NightLine
from streamgauge.results.report.run_records import Records
from streamgauge.streams.advice import words


def failures(run: Path, missing: Sequence[str]) -> Iterator[NightLine]:
    """Yields a line for each stage that is not done or, if all are, for each of `missing`, which did not run."""
    last = {(one.stage, *one.scope.values()): one for one in RunLog(run).stages() if one.stage != "regressions"}
    failed = {name: stage for name, stage in last.items() if stage.state != "done"}
    for name, stage in failed.items():
        yield NightLine("failed", " ".join(name), stage.error or "did not finish")
    if not failed:  # otherwise they are missing because of the failed ones
        yield from (NightLine("failed", name, "never started") for name in missing)


def changed_answers(series: Sequence[Series], run_id: str) -> Iterator[NightLine]:
    """Yields a line for each answer of the suite that was another one, or right, before this run."""
    for one in series:
        for before, after in functional.broken(one.head.metric, one.points):
            if after.run_id == run_id:
                why = f" ({after.reason})" if after.reason else ""
                yield NightLine("error", one.name, functional.said(one.head.metric, before, after) + why)


def wrong(benchmark: Benchmark, store: Store, run_id: str) -> Iterator[NightLine]:
    """Yields a line for each part of the measurements of a cell whose answers were wrong."""
    for record in Records(benchmark, store, run_id).cells:
        name = " ".join([benchmark.name, *record.cell.model_dump().values()])
        yield from (NightLine("error", f"{name} {part}", "the answers were wrong") for part in record.wrong)


def missing(series: Sequence[Series], run_id: str, differs: Callable[..., str]) -> Iterator[NightLine]:
    """Yields a line for figures that are void in this run, and were sound before it in the same benchmark.

    Before it is the last run that had a sound one, or, where only some nights keep the figure, the run before alone.
    A figure that was not kept at all is not told: a law that does not fit has none, and an engine may tell less.
    differs: says of a run, a subject, and `others` (see `edited`) whether settings differ besides the system.
    """
    names: dict[tuple[str, Subject, str, str, bool], list[str]] = {}
    for one in series:
        watched = is_rerun(one.head.metric)
        now = [point for point in one.points if point.run_id == run_id]
        before = [point for point in (one.sound if watched else one.points) if point.run_id != run_id]
        if before and now and before[-1].is_sound and not now[-1].valid:
            key = (one.head.benchmark, one.subject, before[-1].run_id, now[-1].reason, not watched)
            names.setdefault(key, []).append(one.head.metric)
    for (benchmark, subject, run_before, why, others), metrics in names.items():
        if not differs(run_before, subject, others=others):
            said = f"{first_of(metrics)}: void: {why}; {run_before} had {'it' if len(metrics) == 1 else 'them'}"
            yield NightLine("missing", f"{benchmark} {subject.name}", said)


def growths(series: Sequence[Series], store: Store, run_id: str) -> Iterator[NightLine]:
    """Yields a line for each series of a soak that grows in this run, and did not in the last one that judged it.

    It is open, as one soak in twenty errs. Other settings are no excuse: a growth needs no comparison.
    """
    for one in (one for one in series if one.head.metric.startswith("soak_")):
        now = _soaked(store, run_id, one)
        if now is None or now.kind != "growing":
            continue
        runs = dict.fromkeys(point.run_id for point in reversed(one.sound) if point.run_id != run_id)
        judged = ((run, soaked.kind) for run in runs if (soaked := _soaked(store, run, one)) is not None)
        then, kind = next(judged, ("", "growing"))
        if kind != "growing":
            yield NightLine("open", one.name, f"{now.growth}; it was {kind} in {then}")


def _soaked(store: Store, run_id: str, series: Series) -> Followed | None:
    """Finds the judgement of a run's soak that belongs to a series of rates; None if there is none."""
    head = series.head
    cell = Cell(experiment=head.experiment, workload=head.workload, system=head.system)
    with suppress(OSError, Damaged):
        run = SoakRun.read(store.root / "runs" / run_id / "cells" / cell.name / "soak.json")
        return next((one for one in run.series if one.metric == head.metric), None)
    return None


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
