"""Judges a night against earlier nights: answers at once, figures by change points that a rerun confirms.

Index.history -> changes.find -> suspects.suspects -> reruns.in_turns -> suspects.confirm -> a judgement in the run.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from streamgauge.app.nights import issues, stages
from streamgauge.app.nights.reruns import Measure, Subject, Turns, Values, column, edited, in_turns, is_rerun, of_cell
from streamgauge.app.nights.series import Series, searched
from streamgauge.base.errors import UserError
from streamgauge.base.words import counted
from streamgauge.bench.answers import rerun
from streamgauge.bench.answers.figures import SECONDS
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measurements.search.stage import PER_UNIT, RATE
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Nightly, keep, of_run
from streamgauge.records.judgement import ACCEPTED, LOOK, SELF, Evidence, Judgement, Look, Outcome, Rerun, SelfTest
from streamgauge.records.night import NightLine, NightReport
from streamgauge.results.index import Index
from streamgauge.results.index.result_index import series_key
from streamgauge.stats.ab import LEAST, compare
from streamgauge.stats.outcomes import Change, Comparison, Found
from streamgauge.stats.suspects import SUSPECT_ALPHA, confirm, higher_is_better

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge")
#: in a run's directory: the report of the night
REPORT = "nightly.json"
BAD = ("failed", "error", "regression")
OPEN = ("open", "waiting", "outgrown", "missing")
#: why a rate is not judged
ANOTHER_JUDGED = "another of its figures is judged, which a slower machine does not change"
#: why a figure of another measurement is not rerun
OF_OTHERS = "nights rerun rates, latencies and CPU, and no figures of other measurements"


@dataclass(frozen=True)
class Night:
    """A night's run, with its index and what is needed to measure again."""

    benchmark: Benchmark
    store: Store
    run_id: str
    index: Index
    session: Callable[[], SparkSession]
    missing: Sequence[str] = ()  # stages that decide the run's outcome, and did not run

    @property
    def settings(self) -> Nightly:
        return self.benchmark.nightly or Nightly()

    @property
    def directory(self) -> Path:
        return self.store.run(self.run_id)

    def judge(self) -> list[NightLine]:
        """Judges the night; returns the lines of its report, and keeps judgements in the run's records and the index.

        What an earlier, killed attempt has judged is reported again, but not measured again.
        """
        keep(self.benchmark, self.directory)
        self._report([])
        self.index.add_run(self.directory)
        lines = []
        for line in self._lines():
            log.info("%s", line)
            lines.append(line)
            self._report(lines)
        if not lines:
            log.info("nothing failed, and no change is seen in %s", counted(len(self._series()), "figure"))
        self.index.add_run(self.directory)
        issues.write(self.directory, self._series())
        self._report(lines, complete=True)
        return lines

    def _report(self, lines: Sequence[NightLine], *, complete: bool = False) -> None:
        states = {line.state for line in lines}
        NightReport(
            benchmark=self.benchmark.name,
            run_id=self.run_id,
            state="bad" if states & set(BAD) else "open" if states & set(OPEN) else "good",
            complete=complete,
            lines=tuple(lines),
        ).write(self.directory / REPORT)

    def _lines(self) -> Iterator[NightLine]:
        yield from stages.failures(self.directory, self.missing)
        yield from stages.wrong(self.benchmark, self.store, self.run_id)
        yield from stages.outgrown(self.benchmark, self.store, self.directory)
        series = self._series()
        yield from stages.changed_answers([one for one in series if one.is_output], self.run_id)
        figures = [one for one in series if not one.is_output]
        yield from stages.missing(searched(figures), self.run_id, self._differs)
        yield from stages.growths(figures, self.store, self.run_id)
        taken = {(one.head.key, j.changed_at) for one in figures for j in one.judged if j.outcome == ACCEPTED}
        settled = [
            (one, judged)
            for one in figures
            for judged in one.judged
            if self._settled(judged) and (one.head.key, judged.changed_at) not in taken
        ]
        yield from (_said(one, judged) for one, judged in settled)
        tested = {one.subject for one, judged in settled if judged.outcome == SELF}
        left = self.settings.self_tests - len(tested)
        rerun = [one for one in figures if is_rerun(one.head.metric)]
        for subject in self._due(rerun):
            if left <= 0:
                break
            measured, lines = self._self_test(subject, [one for one in rerun if one.subject == subject])
            yield from lines
            left -= measured  # one that cannot be measured leaves its turn to the next
        yield from self._suspects(self._series() if self.settings.self_tests else figures)

    def _settled(self, judged: Judgement) -> bool:
        """True if an earlier, killed attempt already judged this; what stayed open is measured anew."""
        return judged.run_id == self.run_id and judged.outcome != "open"

    def _series(self) -> list[Series]:
        """Series with a point of this run, by its own records: a host that shares the index may use the same run id."""
        mine = {series_key(result) for result in results.read(self.directory)}
        heads = self.index.series(benchmark=self.benchmark.name)
        return [Series.of(self.index, head) for head in heads if head.key in mine]

    # -- A/A

    def _due(self, figures: list[Series]) -> list[Subject]:
        """Lists the subjects; those whose last A/A comparison is oldest come first."""
        last: dict[Subject, str] = {}
        for one in figures:
            moments = [j.changed_at for j in one.judged if j.outcome == SELF]
            last[one.subject] = max([last.get(one.subject, ""), *moments])
        return sorted(last, key=lambda subject: (last[subject], subject.name))

    def _self_test(self, subject: Subject, figures: list[Series]) -> tuple[bool, list[NightLine]]:
        """Compares a subject with itself (A/A); returns whether it could be measured, and what to say of it."""
        try:
            measure = self._measure(self.benchmark, subject, figures, [self.run_id])
            sides = in_turns(measure, measure, LEAST)
        except UserError as problem:
            return False, [NightLine("self", subject.name, f"A/A not measured: {problem}")]
        lines = []
        for one in figures:
            baseline, candidate = (column(side, one.head.metric) for side in sides)
            if not (baseline and candidate):
                lines.append(NightLine("self", one.name, "A/A: no valid figure"))
                continue
            comparison = compare(baseline, candidate, higher_is_better=higher_is_better(one.head.metric, one.head.unit))
            evidence = SelfTest(comparison=comparison, baseline=tuple(baseline), candidate=tuple(candidate))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            lines.append(_said(one, self._record(one, now, SELF, comparison.ratio - 1, evidence)))
        self.index.add_run(self.directory)
        return True, lines

    # -- change points

    def _suspects(self, series: list[Series]) -> Iterator[NightLine]:
        figures = [one for one in series if not one.is_output]
        watched = searched(figures)
        changes = {one.head.key: one.changes(len(watched), SUSPECT_ALPHA) for one in figures}
        self._keep_looks(figures, {one.head.key for one in watched}, changes)
        suspects = [(one, change) for one in watched for change in one.suspects(changes[one.head.key].changes)]
        suspects.sort(key=lambda pair: (pair[0].subject.name, pair[1].index))
        yield from (self._of_others(*pair) for pair in suspects if not is_rerun(pair[0].head.metric))
        rerun = [pair for pair in suspects if is_rerun(pair[0].head.metric)]
        groups = [list(some) for _, some in groupby(rerun, key=lambda pair: pair[0].subject)]
        # the most confident first: the others can wait for the next night
        groups.sort(key=lambda some: -max(change.confidence for _, change in some))
        for number, some in enumerate(groups):
            if number < self.settings.max_reruns:
                yield from self._rerun(some)
            else:
                yield from (
                    NightLine("waiting", one.name, f"{_since(one, change)}; not rerun tonight") for one, change in some
                )

    def _keep_looks(self, figures: list[Series], watched: set[str], changes: dict[str, Found]) -> None:
        """Stores what was seen in each series, for pages. watched: keys of those in which changes are looked for."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        for one in figures:
            look = one.look(changes[one.head.key])
            if one.head.key not in watched:
                look = Look(noise=look.noise, detectable=look.detectable, reason=ANOTHER_JUDGED)
            self._record(one, now, LOOK, 0.0, look)

    def _rerun(self, some: list[tuple[Series, Change]]) -> Iterator[NightLine]:
        """Measures one subject again, and judges all of its suspects."""
        first, change = some[0]
        before = first.sound[change.index - 1]
        if why := self._differs(before.run_id, first.subject):
            yield from (self._open(one, change, why) for one, change in some)
            return
        old = self._as_of(before.run_id, first.subject)
        same, shared = old.systems == self.benchmark.systems, None
        for one, change in some:
            moment = one.sound[change.index].at
            try:
                if same and (one.head.metric in (RATE, PER_UNIT, SECONDS) or self.benchmark.search.in_turns):
                    raise UserError("nights and reruns measure this figure in different ways; later nights will decide")
                if shared is None:
                    figures = [series for series, _ in some]
                    level = [point.run_id for point in first.sound[change.begin : change.index]]
                    newest = level[-sum(self.settings.repetitions) :]
                    sides = [
                        self._measure(benchmark, first.subject, figures, newest) for benchmark in (old, self.benchmark)
                    ]
                    shared = Turns(None if same else sides[0], sides[1])
                test = one.self_test
                level_before = one.sound[change.begin : change.index]  # an earlier level is no baseline
                confirmed = confirm(
                    change,
                    shared.of(one.head.metric, [point.figure for point in level_before]),
                    higher_is_better=higher_is_better(one.head.metric, one.head.unit),
                    repetitions=self.settings.repetitions,
                    self_comparison=(test.baseline, test.candidate) if test else None,
                )
            except UserError as problem:
                yield self._open(one, change, str(problem))
                continue
            against = "the nights before" if shared.first is None else f"the settings of {before.run_id}"
            evidence = Rerun(
                change=change,
                comparison=confirmed.comparison,
                against=against,
                before=before.software,
                after=one.sound[change.index].software,
            )
            yield _said(one, self._record(one, moment, confirmed.outcome, change.magnitude, evidence))

    def _of_others(self, one: Series, change: Change) -> NightLine:
        """Leaves a suspect figure of another measurement open; its line says so if its settings have changed."""
        why = self._differs(one.sound[change.index - 1].run_id, one.subject, others=True)
        return self._open(one, change, why or OF_OTHERS)

    def _open(self, one: Series, change: Change, why: str) -> NightLine:
        rerun = Rerun(change=change, why=why)
        self._record(one, one.sound[change.index].at, "open", change.magnitude, rerun)
        return NightLine("open", one.name, f"{_since(one, change)}; not rerun: {why}")

    def _as_recorded(self, run_id: str) -> Benchmark:
        """Returns the benchmark of that run. Raises UserError if the run has not kept a readable one."""
        return of_run(self.store.root / "runs" / run_id, self.benchmark)

    def _differs(self, run_id: str, subject: Subject, *, others: bool = False) -> str:
        """Says why figures of that run are not compared with tonight's, as settings differ or are not known."""
        try:
            edits = edited(self._as_recorded(run_id), self.benchmark, subject, others=others)
        except UserError as problem:
            return str(problem)
        return f"the benchmark is not what it was in {run_id} ({', '.join(edits)})" if edits else ""

    def _as_of(self, run_id: str, subject: Subject) -> Benchmark:
        """Returns tonight's benchmark with the system as it was in that run. Raises UserError."""
        earlier = self._as_recorded(run_id)
        past = {system.name: system for system in earlier.systems if system.name == subject.system}
        systems = tuple(past.get(system.name, system) for system in self.benchmark.systems)
        return self.benchmark.model_copy(update={"systems": systems})

    def _measure(self, benchmark: Benchmark, subject: Subject, figures: list[Series], runs: Sequence[str]) -> Measure:
        """Returns a function that measures one repetition of these figures, at the median sustainable rate of the runs.

        Each of those nights was measured at its own rate; that of a single one would make all repetitions alike wrong.
        Without a rate of theirs it takes tonight's. Raises UserError if no rate is known.
        """
        metrics = [one.head.metric for one in figures]
        if subject.suite:
            names = (subject.experiment, subject.workload, subject.system, subject.mode)

            def measure() -> Values:
                spark = self.session()  # before the lock: the lock's next holder kills what started within it
                with measuring(f"{self.store.run(self.run_id)} rerun {subject.name}"):
                    return rerun.seconds(spark, benchmark, self.store, *names)

            measure()  # a warm-up: otherwise the first repetition would pay for compilation
            return measure
        rates = self._rates(subject, figures, runs) or self._rates(subject, figures, [self.run_id])
        if not rates:
            raise UserError("no sustainable rate is known")
        return of_cell(benchmark, self.store, subject, metrics, median(rates), self.run_id)

    def _rates(self, subject: Subject, figures: list[Series], runs: Sequence[str]) -> list[float]:
        """The sustainable rates of these runs for the subject, on the machine of the figures."""
        return [
            float(row["value"])
            for run in runs
            for row in self.index.results(
                run_id=run, metric=RATE, experiment=subject.experiment, workload=subject.workload, system=subject.system
            )
            if row["valid"] and row["value"] and row["machine"] == figures[0].head.machine
        ]

    def _record(self, one: Series, moment: str, outcome: Outcome, magnitude: float, evidence: Evidence) -> Judgement:
        judgement = Judgement(self.run_id, one.head.key, moment, outcome, magnitude, evidence)
        results.judge(self.directory, judgement)
        return judgement


def _said(one: Series, judged: Judgement) -> NightLine:
    """The line of a judgement for which something was measured."""
    evidence = judged.evidence
    if isinstance(evidence, SelfTest):
        return NightLine("self", one.name, f"A/A: {_described(evidence.comparison)}")
    step = _step(judged.magnitude, judged.changed_at)
    if isinstance(evidence, Rerun) and evidence.comparison:
        step += f"; rerun against {evidence.against}: {_described(evidence.comparison)}"
    return NightLine(judged.outcome, one.name, step)


def _described(comparison: Comparison) -> str:
    """Describes a change with its interval, noise floor and detectable effect, in one line."""
    low, high = (_percent(end - 1, "+") for end in comparison.interval or (math.nan, math.nan))
    interval = f"({low} to {high})" if comparison.interval else f"({comparison.reason})"
    floor, detectable = _percent(comparison.noise_floor), _percent(comparison.detectable_effect)
    return f"{_percent(comparison.ratio - 1, '+')} {interval}; noise floor {floor}, detectable effect {detectable}"


def _since(one: Series, change: Change) -> str:
    return _step(change.magnitude, one.sound[change.index].at)


def _step(magnitude: float, moment: str) -> str:
    return f"{_percent(magnitude, '+')} since {moment[:10]}"


def _percent(value: float | None, sign: str = "") -> str:
    return "unknown" if value is None else f"{100 * value:{sign}.1f} %"
