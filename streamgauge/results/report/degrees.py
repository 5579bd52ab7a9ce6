"""Costs of disorder, as numbers: ratios of rates of one process, axes of experiments, events lost, state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.bench.measurements.scaling.record import DisorderInCpus, ScalingRun, disorder_in_cpus
from streamgauge.config import Experiment
from streamgauge.records.comparison import Comparison
from streamgauge.results.report.run_records import CellRecord, Records, Stream
from streamgauge.results.report.trials import batches_of, system_of


@dataclass(frozen=True)
class Axes:
    """The experiments that differ in one thing each; an axis with fewer than two points is empty."""

    base: str  # the least disordered
    factors: dict[str, float]  # experiment -> out-of-order percent
    degrees: tuple[str, ...]  # those that differ in their percent alone, the base first
    delays: tuple[str, ...]  # those that differ in their longest delay alone


def axes(records: Records) -> Axes:
    """Sorts the experiments of a run into the two axes."""
    factors = {s.experiment.name: factor(s) for s in records.streams}
    base = min(factors, key=lambda name: factors[name])
    others = [s.experiment for s in records.streams if s.experiment.name != base]
    degrees = _largest(others, lambda e: (e.delay, e.seed))
    delays = _largest(others, lambda e: (e.target_percent, e.seed, e.delay.distribution, e.delay.outages))
    if len({e.delay.max for e in delays}) < 2:
        delays = []
    by_factor = sorted((e.name for e in degrees), key=lambda name: factors[name])
    by_delay = sorted(delays, key=lambda e: e.delay.max.seconds)
    return Axes(base, factors, (base, *by_factor), tuple(e.name for e in by_delay))


def factor(stream: Stream) -> float:
    """Achieved out-of-order fraction in percent; the target if it is not known, and 0 if that is not known either."""
    m = stream.manifest
    return 100 * m.achieved_out_of_order / m.events if m and m.events else stream.experiment.target_percent or 0.0


def out_of_order_percent(stream: Stream) -> float:
    """The share that is out of order, in percent; the target of a stream that was not made, and 0 without one."""
    return stream.manifest.out_of_order_percent if stream.manifest else stream.experiment.target_percent or 0.0


def wanted(experiment: Experiment) -> str:
    """The target as a page shows it."""
    return experiment.wanted.replace(" %", "\u202f%")


def _largest(experiments: Iterable[Experiment], alike: Callable[[Experiment], object]) -> list[Experiment]:
    """The largest group of experiments for which `alike` gives the same; the first of equally large ones."""
    groups: dict[object, list[Experiment]] = {}
    for one in experiments:
        groups.setdefault(repr(alike(one)), []).append(one)
    return max(groups.values(), key=len, default=[])


def line_of(record: CellRecord) -> tuple[str, str]:
    """Workload and system, for which a curve is drawn."""
    return record.cell.workload, record.cell.system


def comparisons(records: Records) -> list[Comparison]:
    """The comparisons of cells' figures with those of the first stream of their process, in the cells' order."""
    claims = {one.cell.name: one.claim for one in records.cells}
    return [compared.among(claims) for one in records.cells if one.search for compared in one.search.compared]


def in_cpus(records: Records) -> dict[str, DisorderInCpus]:
    """Costs of disorder in CPUs, by the name of each cell that was scaled as a less disordered one was."""
    each = (records.of_cell(cell, "scaling", ScalingRun) for cell in records.benchmark.all_cells())
    return disorder_in_cpus(filter(None, each))


def is_rate(record: CellRecord) -> bool:
    """True if the cell has a rate of its own: not void, and not just what the driver could offer."""
    return bool(record.rate) and not record.claim.is_bound


def at_own_rate(record: CellRecord, fraction: float | None) -> LatencyRun | None:
    """The sound latency run at that fraction of the cell's own rate."""
    runs = [run for run in record.latency if not run.common and run.fraction == fraction and run.is_sound]
    return runs[-1] if runs else None


def at_common_rate(record: CellRecord, rate: float | None) -> LatencyRun | None:
    """The sound latency run at that rate, which all cells share."""
    runs = [run for run in record.latency if run.common and run.rate_events_per_s == rate and run.is_sound]
    return runs[-1] if runs else None


def lost(record: CellRecord) -> LatencyRun | None:
    """The checked latency run that tells how many events were lost: that at the common rate, if there is one."""
    runs = [run for run in record.latency if run.late_events is not None and run.correct]
    return max(runs, key=lambda run: (run.common, run.fraction), default=None)


def share_lost(run: LatencyRun | None) -> float | None:
    """Events that no answer contains, in percent of those offered."""
    return 100 * run.late_events / run.offered if run and run.offered and run.late_events is not None else None


def state_of(record: CellRecord) -> tuple[int | None, int | None]:
    """(Bytes, rows) of the state, the largest that the engine reported in a latency run; None where it reports none."""
    batches = [batch for run in record.latency_trials for batch in batches_of(run)]
    sizes = [batch.get("state_bytes") for batch in batches]
    sizes += [system_of(run).get("state_bytes") for run in record.latency_trials]
    rows = [batch.get("state_rows") for batch in batches]
    return max(filter(None, sizes), default=None), max(filter(None, rows), default=None)


def latency_ms(run: LatencyRun | None, quantile: str) -> float | None:
    """A quantile of a run's event-time latency."""
    return run.event_latency.by_name([quantile])[0][1] if run else None


def by_line(cells: Sequence[CellRecord], names: Sequence[str]) -> dict[tuple[str, str], list[CellRecord]]:
    """Maps workload and system to their cells of these experiments, in that order."""
    lines: dict[tuple[str, str], list[CellRecord]] = {}
    for name in names:
        for record in cells:
            if record.cell.experiment == name:
                lines.setdefault(line_of(record), []).append(record)
    return {line: records for line, records in lines.items() if len(records) > 1}
