"""Release check: answers of both systems, repetitions in turns, suspects once more, a manifest with its checksum."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from statistics import median

from streamgauge.base import secrets
from streamgauge.base.canonical import canonical, with_sha256
from streamgauge.base.environment import commit, environment
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.jsonl import delete_log, log_bytes, write_json
from streamgauge.base.places import here
from streamgauge.base.shipped import SHIPPED
from streamgauge.bench.answers.systems import askable, require_askable
from streamgauge.bench.compare import beside, release_rules
from streamgauge.bench.compare.beside import Compared, OneSide
from streamgauge.bench.compare.release_rules import Release
from streamgauge.bench.driver.fleet import KeptDrivers
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell import ReadyCell, ready
from streamgauge.bench.measure.cell_run import CellRun, measure
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measure.searcher import one_ladder
from streamgauge.bench.measurements import RatedSection
from streamgauge.bench.measurements.catchup.record import Repeat
from streamgauge.bench.measurements.catchup.stage import refuse_backlog, repeat_of, repeated
from streamgauge.bench.measurements.latency.stage import figures_of
from streamgauge.bench.search.claims import claim_of
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.config import RELEASE_CATCHUP, RELEASE_METRICS, RELEASE_RATE, Benchmark, Cell
from streamgauge.records.answers import MODES, FeatureAbility
from streamgauge.records.judgement import RELEASE_CHECK, Judgement, ReleaseVerdict
from streamgauge.records.registry import outputs_of, partly_of
from streamgauge.records.release import (
    Beside,
    JudgedSeries,
    Reason,
    ReleaseAnswer,
    ReleaseCheck,
    ReleaseManifest,
    Repetition,
    Side,
)
from streamgauge.records.result import Result

log = logging.getLogger("streamgauge")
ANSWERS, REPETITIONS, RECORD, MANIFEST = "release-answers.jsonl", "release.jsonl", "release.json", "manifest.json"


def check(benchmark: Benchmark, baseline: str, candidate: str) -> None:
    """Checks the benchmark and both systems before anything starts. Raises UserError."""
    if benchmark.release is None:
        raise UserError(f"{benchmark.name}: release: this key is missing; a release check needs at least its rate")
    if not benchmark.workloads:
        raise UserError(f"{benchmark.name}: workloads: found none, allowed: one or more to measure")
    names = {query.name.rpartition(".")[2] for query in QUERIES} | {"all"}
    for query in benchmark.release.queries:
        if query not in names:
            raise UserError(f"release.queries: found {query!r}, allowed: all, or some of q0 to q23")
    for side, name in (("baseline", baseline), ("candidate", candidate)):
        known = [system.name for system in benchmark.systems]
        if name not in known:
            raise UserError(f"--{side}: found {name!r}, allowed: {', '.join(known) or 'none'}")
        system = benchmark.system(name)
        system.check_installed()
        if benchmark.release.queries:
            require_askable((system,))


def run(benchmark: Benchmark, store: Store, baseline: str, candidate: str, directory: Path) -> ReleaseCheck:
    """Runs the check; returns its record. Deletes and repeats what an earlier attempt measured."""
    check(benchmark, baseline, candidate)
    for name in (ANSWERS, REPETITIONS, RECORD, MANIFEST):
        delete_log(directory / name)
    one = _Check(benchmark, store, {"baseline": baseline, "candidate": candidate, "control": baseline}, directory)
    with measuring(f"{directory} release check", expected_s=timing.release_seconds(benchmark)) as token:
        reasons, series = one.run(token)
    figures, more = one.beside() if series else ([], [])
    return one.publish(release_rules.decide([*reasons, *more], series), figures)


class _Check:
    def __init__(self, benchmark: Benchmark, store: Store, systems: dict[Side, str], directory: Path) -> None:
        assert benchmark.release is not None
        self.settings = benchmark.release
        self.systems, self.store, self.directory = systems, store, directory
        self.pairs = list(dict.fromkeys((cell.experiment, cell.workload) for cell in benchmark.all_cells()))
        names = dict.fromkeys(systems.values())
        cells = [Cell(experiment=e, workload=w, system=s) for (e, w), s in product(self.pairs, names)]
        self.benchmark = benchmark.model_copy(update={"cells": tuple(cells)})
        self._work = here(directory) / "work"
        self._drivers = KeptDrivers()
        self.repetitions: list[Repetition] = []
        self.versions: dict[str, dict[str, str]] = {}

    def run(self, token: int) -> tuple[list[Reason], list[JudgedSeries]]:
        """The reasons from answers and outputs, and the series; without series if answers are worse."""
        reasons = self._answers()
        if any(reason.state == "failed" for reason in reasons):
            return reasons, []
        with self._drivers:
            return self._judged(reasons, token)

    def _judged(self, reasons: list[Reason], token: int) -> tuple[list[Reason], list[JudgedSeries]]:
        ladders = sorted({metric == RELEASE_RATE for metric in self.settings.tolerance})
        for cell, ladder in product(self.pairs, ladders):
            self._rounds(cell, self.settings.repetitions, token, ladder=ladder)
        if not any(reason.state == "failed" for reason in release_rules.outputs(self.repetitions)):
            suspects = release_rules.suspects(release_rules.series(self.repetitions, self.settings.tolerance))
            for cell, ladder in product(self.pairs, ladders):
                if (".".join(cell), ladder) in suspects:
                    log.info("suspect, run again: %s%s", ".".join(cell), ", its rate" if ladder else "")
                    self._rounds(cell, self.settings.reruns, token, ladder=ladder)
        series = release_rules.series(self.repetitions, self.settings.tolerance)
        left_out = release_rules.left_out(self.repetitions)
        return [*reasons, *release_rules.outputs(self.repetitions), *left_out], series

    # -- answers

    def _answers(self) -> list[Reason]:
        """Differences between both systems' answers, and between what they can do."""
        if not self.settings.queries:
            systems = map(self.benchmark.system, dict.fromkeys(self.systems.values()))
            others = sorted({system.engine for system in systems if not askable(system)})
            return release_rules.not_asked(others) if others else release_rules.answers([], [])
        from streamgauge.bench.answers.ask_systems import ask
        from streamgauge.bench.answers.capabilities import capabilities
        from streamgauge.bench.answers.finite_stream import make_events, wanted_stream
        from streamgauge.bench.answers.nexmark_suite import chosen
        from streamgauge.bench.answers.record import short

        wanted = wanted_stream(self.settings.events, self.settings.seed, self.settings.disorder_percent)
        events = make_events(self.store, wanted)
        sides: tuple[Side, ...] = ("baseline", "candidate")
        asked = {str(side): one for side in sides if askable(one := self.benchmark.system(self.systems[side]))}
        log.info("asking %s, %d events, of both systems", ", ".join(self.settings.queries), self.settings.events)
        answers = ask(asked, self.settings.queries, events, self._work / "answers")
        percent = self.settings.disorder_percent
        features: list[tuple[FeatureAbility, ...]] = []
        for side in sides:
            of_side, system = answers[side], asked[side].name
            self.versions[system] = of_side[-1].versions
            lines = [ReleaseAnswer(side=side, system=system, disorder_percent=percent, **one.fields) for one in of_side]
            for line in lines:
                line.append(self.directory / ANSWERS)
            features.append(capabilities(lines).features)
        due = [(short(query), mode) for query in chosen(",".join(self.settings.queries)) for mode in MODES]
        reasons = release_rules.answers(answers["baseline"], answers["candidate"], due)
        return reasons + release_rules.capabilities(*features)

    # -- repetitions

    def _rounds(self, pair: tuple[str, str], count: int, token: int, *, ladder: bool) -> None:
        """Measures `count` rounds of a cell, the sides in turns; a wrong output of the candidate ends them."""
        ours = [one for one in self.repetitions if one.cell == ".".join(pair)]
        first = 1 + max((one.round for one in ours if one.ladder == ladder), default=0)
        if any(one.wrong and one.side == "candidate" for one in ours):
            return
        for number in range(first, first + count):
            for side in release_rules.sides(number) if ladder else release_rules.TURNS:
                one = self._repetition(pair, side, number, token, ladder=ladder)
                self.repetitions.append(one)
                one.append(self.directory / REPETITIONS)
                log.info("%s round %d of %d, %s: %s", one.cell, number, first + count - 1, side, one.text)
                if one.wrong and side == "candidate":
                    return

    def _repetition(self, pair: tuple[str, str], side: Side, number: int, token: int, *, ladder: bool) -> Repetition:
        """Measures a fresh process: its ladder or a warm-up, then a trial at the fixed rate that checks its output."""
        cell = Cell(experiment=pair[0], workload=pair[1], system=self.systems[side])
        claim = None
        try:
            with ready(self.benchmark, self.store, cell, self._work / "cell", self._drivers) as bench:
                if ladder:
                    claim = claim_of(one_ladder(bench, self.benchmark.search, token))
                else:
                    bench.warm_up(token=token, seconds=self.settings.warmup_seconds)
                measured = bench.trial(self.settings.rate, self.settings.seconds, token=token)
                caught = None if ladder else self._caught_up(bench, token)
        finally:
            shutil.rmtree(self._work / "cell", ignore_errors=True)
        figures = figures_of(1.0, measured)
        self.versions[cell.system] = figures.software
        figures_by_metric = {
            "processing_latency_ms_p50": figures.processing_latency.p50_ms,
            "processing_latency_ms_p99": figures.processing_latency.p99_ms,
            "system_cpu_us_per_event": figures.system_cpu_us_per_event,
        }
        wrong = measured.check["wrong"] if measured.check else None
        void = None if figures.valid or wrong else figures.reason
        if caught is not None:
            # one that patience has ended took as long at least: without a figure it would not count as slow
            patience_s = self.benchmark.catchup.most_s if self.benchmark.catchup else None
            figures_by_metric[RELEASE_CATCHUP] = patience_s if caught.live_s is None else caught.live_s
            wrong = wrong or (caught.reason if caught.correct is False else None)
            void = void or (None if caught.valid or wrong else caught.reason)
        if claim is not None:
            figures_by_metric = {RELEASE_RATE: claim.rate_events_per_s}
            if not wrong and (claim.is_bound or claim.rate_events_per_s is None):
                void = claim.sentence
        return Repetition(
            cell=".".join(pair),
            side=side,
            round=number,
            values={metric: value for metric, value in figures_by_metric.items() if value is not None},
            outcome=measured.outcome,
            void=void,
            wrong=wrong,
            compared=measured.check is not None,
            ladder=ladder,
            claim=claim.kind if claim else "",
            bounds=(RELEASE_CATCHUP,) if caught is not None and caught.live_s is None else (),
        )

    def _caught_up(self, bench: ReadyCell, token: int) -> Repeat | None:
        """Lets the process take the backlog of the section catchup, if that is compared."""
        section = self.benchmark.catchup
        if section is None or RELEASE_CATCHUP not in self.settings.tolerance:
            return None
        refuse_backlog(self.benchmark.replay, section.minutes, self.settings.rate)
        measured, _ = repeated(bench, section, self.settings.rate, token)
        return repeat_of(measured, self.benchmark.search.max_age.seconds)

    # -- measurements whose figures decide nothing, and whose answers do

    def beside(self) -> tuple[list[Beside], list[Reason]]:
        """Measures once, of each side, what the file asks for beside; each measurement takes the lock itself."""
        figures: list[Beside] = []
        reasons: list[Reason] = []
        for pair, name in product(self.pairs, self.settings.beside):
            cell, old, new = ".".join(pair), self._once(pair, "baseline", name), self._once(pair, "candidate", name)
            figures += beside.figures(cell, old, new)
            reasons += beside.outputs(cell, name, old, new)
        return figures, reasons

    def _once(self, pair: tuple[str, str], side: Side, name: str) -> OneSide:
        """Measures one side, at the rate of the check."""
        section = self.benchmark.sections[name]
        if isinstance(section, RatedSection):
            section = section.model_copy(update={"rate": self.settings.rate})
        benchmark = self.benchmark.model_copy(update={name: section})
        cell = Cell(experiment=pair[0], workload=pair[1], system=self.systems[side])
        cell_run = CellRun(benchmark, self.store, cell, self._work / "beside")
        log.info("%s, %s: %s", cell.name, side, name)
        shutil.rmtree(cell_run.run_directory, ignore_errors=True)
        problem, outputs = "", dict[str, Compared]()
        try:
            for one in ("search", name) if section.searches else (name,):
                measure(one, cell_run)
                outputs |= {**outputs_of(cell_run.directory, one), **partly_of(cell_run.directory, one)}
        except (UserError, Outage) as error:  # the verdict on what was measured is not lost
            log.warning("%s, %s: %s", cell.name, side, error)
            problem = str(error)
        figures = [one for one in results.read(cell_run.run_directory) if one.metric.startswith(f"{name}_")]
        return OneSide(figures, outputs, problem)

    # -- what remains

    def publish(self, release: Release, beside: Sequence[Beside] = ()) -> ReleaseCheck:
        """Writes results, the judgement, the record and the manifest; returns the record."""
        configuration = canonical(secrets.masked(self.benchmark.model_dump(mode="json")))
        asked = hashlib.sha256(configuration.encode()).hexdigest()
        for result in self._results(asked):
            results.append(self.directory, result)
        evidence = ReleaseVerdict(
            verdict=release.decision,
            reasons=tuple(f"{reason.what}: {reason.why}" for reason in release.reasons if reason.state != "note"),
            baseline=self.systems["baseline"],
            candidate=self.systems["candidate"],
        )
        now, host = datetime.now(UTC).isoformat(timespec="seconds"), environment()
        results.judge(self.directory, Judgement(self.directory.name, "", now, RELEASE_CHECK, 0.0, evidence))
        about = {
            "run": self.directory.name,
            "benchmark": self.benchmark.name,
            "baseline": self.systems["baseline"],
            "candidate": self.systems["candidate"],
            "verdict": release.decision,
            "line": release.line,
        }
        judged = {"reasons": release.reasons, "series": release.series, "beside": beside}
        record = ReleaseCheck(**about, **judged, versions=self.versions, environment=host)
        record.write(self.directory / RECORD)
        manifest = ReleaseManifest(
            **about,
            configuration=json.loads(configuration.replace(f'"{SHIPPED}/', '"')),
            configuration_sha256=asked,
            sources=self.store.source_fingerprint(self.benchmark.source.files),
            systems={name: self.versions.get(name, {}) for name in dict.fromkeys(self.systems.values())},
            machine=host.machine,
            software=host.software,
            commit=commit(),
            records={
                name: hashlib.sha256(written).hexdigest()
                for name in (ANSWERS, REPETITIONS, RECORD)
                if (written := log_bytes(self.directory / name))
            },
            commands=list(self._commands()),
        )
        content = manifest.model_dump(mode="json", exclude={"sha256"})
        write_json(self.directory / MANIFEST, with_sha256(secrets.shown(content)))
        shutil.rmtree(self._work, ignore_errors=True)
        return record

    def _results(self, asked: str) -> Iterable[Result]:
        """Yields the median of each system, cell and metric; the control counts as the baseline, which it is."""
        for (experiment, workload), system, metric in product(
            self.pairs, dict.fromkeys(self.systems.values()), self.settings.tolerance
        ):
            ours = [
                one
                for one in self.repetitions
                if one.cell == f"{experiment}.{workload}" and self.systems[one.side] == system
                and one.is_sound and metric in one.values
            ]  # fmt: skip
            values = [one.values[metric] for one in ours]
            if values:
                yield Result(
                    self.benchmark.name, experiment, workload, system, "streaming",
                    f"{metric}_in_turns" if metric == RELEASE_RATE else f"{metric}_at_{self.settings.rate:g}_per_s",
                    RELEASE_METRICS[metric], median(values),
                    self.directory.name, asked[:16], min(values), max(values), len(values),
                    software={**environment().software, **self.versions.get(system, {})}, replaces=True,
                    claim=release_rules.rates_claim(ours) if metric == RELEASE_RATE
                    else "at least" if any(metric in one.bounds for one in ours) else "",
                )  # fmt: skip

    def _commands(self) -> Iterable[str]:
        yield f"git checkout {commit() or '<commit>'}"
        yield "make setup"
        names = dict.fromkeys(self.systems.values())
        installs = (self.benchmark.system(name).installed_by(self.versions.get(name, {})) for name in names)
        yield from dict.fromkeys(filter(None, installs))
        yield (
            f"streamgauge release-check {MANIFEST} --baseline {self.systems['baseline']} "
            f"--candidate {self.systems['candidate']}"
        )
