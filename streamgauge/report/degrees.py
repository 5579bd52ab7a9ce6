"""Costs of disorder, as numbers: ratios of rates of one process, axes of experiments, events lost, state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from streamgauge.config import Experiment
from streamgauge.report.run_records import CellRecord, Json, Records, Stream, is_sound
from streamgauge.report.trials import batches_of
from streamgauge.search.comparison import RATE, Comparison, compared_of


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
    delays = _largest(others, lambda e: (e.target_percent, e.seed, e.delay.distribution))
    if len({e.delay.max for e in delays}) < 2:
        delays = []
    by_factor = sorted((e.name for e in degrees), key=lambda name: factors[name])
    by_delay = sorted(delays, key=lambda e: e.delay.max.seconds)
    return Axes(base, factors, (base, *by_factor), tuple(e.name for e in by_delay))


def factor(stream: Stream) -> float:
    """Achieved out-of-order fraction in percent; the target if it is not known, and 0 if that is not known either."""
    m = stream.manifest or {}
    achieved, events = m.get("achieved_out_of_order"), m.get("events")
    return 100 * achieved / events if achieved is not None and events else stream.experiment.target_percent or 0.0


def out_of_order_percent(stream: Stream) -> float:
    """The target in percent; the achieved factor of a stream as it came."""
    percent = stream.experiment.target_percent
    return factor(stream) if percent is None else percent


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


def comparisons(records: Records, record: CellRecord) -> list[Comparison]:
    """The comparisons of a cell's figures with those of the first stream of its process, the rate's first."""
    try:
        compared = compared_of(record.search or {})
    except ValidationError:  # its record is damaged
        return []
    return [one.among({each.cell.name: each.claim for each in records.cells}) for one in compared]


def comparison(records: Records, record: CellRecord, metric: str = RATE) -> Comparison | None:
    """The comparison of one figure; None without one."""
    return next((one for one in comparisons(records, record) if one.metric == metric), None)


def is_rate(record: CellRecord) -> bool:
    """True if the cell has a rate of its own: not void, and not just what the driver could offer."""
    return bool(record.rate) and not record.claim.is_bound


def at_own_rate(record: CellRecord, fraction: float | None) -> Json | None:
    """The sound latency run at that fraction of the cell's own rate."""
    found = [r for r in record.latency if not r.get("common") and r.get("fraction") == fraction and is_sound(r)]
    return found[-1] if found else None


def at_common_rate(record: CellRecord, rate: float | None) -> Json | None:
    """The sound latency run at that rate, which all cells share."""
    found = [run for run in record.latency if run.get("common") and run["rate_events_per_s"] == rate and is_sound(run)]
    return found[-1] if found else None


def common_rates(cells: Iterable[CellRecord]) -> list[float]:
    """The rates in events/s at which cells were measured alike, the lowest first."""
    return sorted({run["rate_events_per_s"] for record in cells for run in record.latency if run.get("common")})


def lost(record: CellRecord) -> Json | None:
    """The checked latency run that tells how many events were lost: that at the common rate, if there is one."""
    found = [run for run in record.latency if run.get("late_events") is not None and run.get("correct")]
    return max(found, key=lambda run: (bool(run.get("common")), run["fraction"]), default=None)


def share_lost(run: Json | None) -> float | None:
    """Events that no answer contains, in percent of those offered."""
    return 100 * run["late_events"] / run["offered"] if run and run.get("offered") else None


def state_of(record: CellRecord) -> tuple[int | None, int | None]:
    """(Bytes, rows) of the state, the largest that the engine told of in a latency run; None where it tells none."""
    systems = [(run.get("details") or {}).get("system") or {} for run in record.latency_trials]
    told = [*(batch for run in record.latency_trials for batch in batches_of(run)), *systems]
    sizes, rows = ([one[key] for one in told if one.get(key)] for key in ("state_bytes", "state_rows"))
    return max(sizes, default=None), max(rows, default=None)


def latency_ms(run: Json | None, quantile: str) -> float | None:
    """A quantile of a run's event-time latency."""
    value: float | None = ((run or {}).get("event_latency") or {}).get(f"{quantile}_ms")
    return value


def by_line(cells: Sequence[CellRecord], names: Sequence[str]) -> dict[tuple[str, str], list[CellRecord]]:
    """Maps workload and system to their cells of these experiments, in that order."""
    found: dict[tuple[str, str], list[CellRecord]] = {}
    for name in names:
        for record in cells:
            if record.cell.experiment == name:
                found.setdefault(line_of(record), []).append(record)
    return {line: records for line, records in found.items() if len(records) > 1}
