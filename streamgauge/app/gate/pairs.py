"""The gate: pairs of fresh processes of two commits, until the verdict is clear or the budget is spent."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import delete_log
from streamgauge.base.words import counted
from streamgauge.bench.compare import gate_rules
from streamgauge.bench.compare.release_rules import sides
from streamgauge.bench.driver.fleet import KeptDrivers
from streamgauge.bench.measure.cell import ready
from streamgauge.bench.measure.speed import Speed, speed
from streamgauge.bench.measurements.latency.stage import figures_of
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark, Cell
from streamgauge.config.gate import GATE_CPU, GATE_LATENCY, GATE_SPEED, Accepted, Gate
from streamgauge.records.gate import GateRepetition, GateSeries
from streamgauge.records.release import Reason, Side
from streamgauge.records.trial import TrialResult

log = logging.getLogger("streamgauge")
REPETITIONS, RECORD = "gate.jsonl", "gate.json"
#: most trials until one has answers that are compared, and most processes of a side until one runs
_TRIES = 2
#: so many of the last pairs tell how long the next one takes
_RECENT = 3


@dataclass
class Pairs:
    """The repetitions of a gate. key: hash of what it compares, so that an unfinished one of the same goes on."""

    directory: Path
    key: str
    repetitions: list[GateRepetition] = field(default_factory=list)

    @classmethod
    def of(cls, directory: Path, key: str) -> Pairs:
        """Returns what an unfinished gate of the same has measured; deletes all else."""
        kept: list[GateRepetition] = []
        if (directory / REPETITIONS).exists() and not (directory / RECORD).exists():
            kept = [one for one in GateRepetition.read_log(directory / REPETITIONS) if one.gate == key]
        (directory / RECORD).unlink(missing_ok=True)
        if not kept:
            delete_log(directory / REPETITIONS)
        return cls(directory, key, kept)

    def add(self, one: GateRepetition) -> None:
        self.repetitions.append(one)
        one.append(self.directory / REPETITIONS)

    @property
    def seconds(self) -> float:
        """Seconds that all of them took."""
        return sum(one.seconds for one in self.repetitions)

    @property
    def last(self) -> int:
        """Number of the last round; 0 without any."""
        return max((one.round for one in self.repetitions), default=0)

    def left_out(self) -> list[Reason]:
        """A note of processes that do not count, without the head's that did not run: these are a reason already."""
        void = [one for one in self.repetitions if one.void and (one.ran or one.side == "baseline")]
        if not void:
            return []
        of, last = counted(len(self.repetitions), "process"), void[-1]
        why = f"{len(void)} of {of} do not count; the last one, of the {gate_rules.NAMES[last.side]}: {last.void}"
        return [Reason("performance", "note", "processes", why)]

    def next_seconds(self, *, with_trials: bool) -> float:
        """Estimates the seconds of the next round: those of the longest one of the last."""
        rounds = {one.round: 0.0 for one in self.repetitions}
        for one in self.repetitions:
            rounds[one.round] += one.seconds - (0.0 if with_trials else one.trial_seconds)
        return max(list(rounds.values())[-_RECENT:], default=0.0)


class Measuring:
    """Measures pairs of the cells of a gate. sides: the benchmark with the system of each checkout."""

    def __init__(
        self, sides: Mapping[Side, Benchmark], store: Store, pairs: Pairs, work: Path, budget_s: float
    ) -> None:
        self._sides, self._store, self._pairs, self._work = sides, store, pairs, work
        self._budget_s = budget_s
        benchmark = sides["baseline"]
        assert benchmark.gate is not None
        self._settings: Gate = benchmark.gate
        self._cells = benchmark.all_cells()
        self._drivers = KeptDrivers()

    def run(self, accepted: Sequence[Accepted], token: int) -> tuple[list[Reason], list[GateSeries]]:
        """Measures until the verdict is clear or the budget is spent; returns reasons and series."""
        names = [name_of(cell) for cell in self._cells]
        with self._drivers:
            while True:
                measured = self._pairs.repetitions
                reasons = gate_rules.reasons_of(measured, self._settings)
                series = gate_rules.judged(measured, names, self._settings, accepted, last=False)
                if measured and gate_rules.is_clear(reasons, series):
                    return reasons, series
                asks = any(self._asks(name, side) for name in names for side in gate_rules.NAMES)
                next_s = self._pairs.next_seconds(with_trials=asks)
                if measured and self._pairs.seconds + next_s > self._budget_s:
                    return reasons, gate_rules.judged(measured, names, self._settings, accepted, last=True)
                self._round(series, token)

    def _round(self, series: Sequence[GateSeries], token: int) -> None:
        """Measures a pair of each cell that is still open."""
        number = self._pairs.last + 1
        measured = self._pairs.repetitions
        still_open = {one.cell for one in series if one.state != "passed" or gate_rules.asks_again(measured, one.cell)}
        for cell in self._cells:
            for side in sides(number) if name_of(cell) in still_open else ():
                for _ in range(_TRIES):
                    one = self._repetition(cell, side, number, token)
                    self._pairs.add(one)
                    log.info("%s pair %d, %s: %s", one.cell, number, gate_rules.NAMES[side], one.text)
                    if one.ran:
                        break
                if side == "candidate" and (one.wrong or not one.ran):
                    return

    def _asks(self, cell: str, side: Side) -> bool:
        """True if the next process of that side runs a trial, too."""
        ours = [one for one in self._pairs.repetitions if one.cell == cell]
        checked = self._settings.answers == "skip" or any(one.compared and one.side == side for one in ours)
        return GATE_LATENCY in self._settings.metrics or not checked or gate_rules.asks_again(ours, cell)

    def _repetition(self, cell: Cell, side: Side, number: int, token: int) -> GateRepetition:
        """Measures a fresh process of that side."""
        began, name, settings = time.monotonic(), name_of(cell), self._settings
        ours = [one for one in self._pairs.repetitions if one.cell == name]
        bases = [one for one in ours if one.side == "baseline"]
        asks, base_runs = self._asks(name, side), any(not one.void for one in bases)
        held = next((one.held_rows for one in ours if one.held_rows and not one.void), 0)
        about = {"gate": self._pairs.key, "cell": name, "side": side, "round": number, "compared": False}
        benchmark = self._sides[side]
        search = benchmark.search.model_copy(update={"warmup_seconds": settings.warmup_seconds})
        fast, trial, asked_at = Speed(None, 0), None, None
        try:
            with ready(benchmark, self._store, cell, self._work, self._drivers) as bench:
                fast = speed(bench, search, settings.seconds, held, token)
                asked_at = time.monotonic() if asks else None
                for _ in range(_TRIES if asks and not fast.void else 0):
                    trial = bench.trial(settings.rate or 0.0, settings.seconds, token=token)
                    if trial.check is not None or settings.answers == "skip" or not bench.running:
                        break
                failure = fast.void or (trial.failure if trial else "")
                died = None if bench.fleet.dead() or (bench.running and not fast.stuck) else failure
        except UserError as problem:
            if side == "baseline" or not base_runs:
                raise
            about |= {"values": {}, "void": str(problem), "ran": False}
        else:
            if GATE_CPU in settings.metrics and fast.events_per_s and fast.cpu_us_per_event is None:
                raise UserError(f"gate.compare: {cell.system} tells no CPU time; compare: [speed] needs none")
            about |= {"values": _values(settings, fast, trial), "void": died or fast.void, "held_rows": fast.held_rows}
            blamed = side == "baseline" or (base_runs and all(one.ran for one in bases))
            about |= {"ran": not (died and blamed), **_answers(trial)}
        finally:
            shutil.rmtree(self._work, ignore_errors=True)
        now = time.monotonic()
        about |= {"seconds": round(now - began, 2), "trial_seconds": round(now - (asked_at or now), 2)}
        return GateRepetition.model_validate(about)


def _values(settings: Gate, fast: Speed, trial: TrialResult | None) -> dict[str, float]:
    """The figures that count, by metric."""
    values = {GATE_SPEED: fast.events_per_s, GATE_CPU: fast.cpu_us_per_event}
    if trial is not None and GATE_LATENCY in settings.metrics:
        figures = figures_of(1.0, trial)
        if figures.valid:
            values[GATE_LATENCY] = figures.processing_latency.p50_ms
    return {metric: value for metric, value in values.items() if value is not None and metric in settings.metrics}


def _answers(trial: TrialResult | None) -> dict[str, object]:
    """Returns the fields that tell of the answers, from a trial."""
    if trial is None:
        return {}
    wrong = trial.check["wrong"] if trial.check else None
    unchecked = None if trial.check else trial.observation.invalid or trial.reason
    return {
        "asked": True, "outcome": trial.outcome, "wrong": wrong, "compared": trial.check is not None,
        "unchecked": unchecked,
    }  # fmt: skip


def name_of(cell: Cell) -> str:
    """Name of a cell without its system, which is the same in all."""
    return f"{cell.experiment}.{cell.workload}"
