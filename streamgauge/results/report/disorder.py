"""The page of what disorder costs: rates, events lost, CPU, latency and state against the degree of disorder."""

from __future__ import annotations

from collections.abc import Callable

from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.records.comparison import RATE
from streamgauge.results.report import semantics
from streamgauge.results.report.blocks import Block, Cell, Hole, Note, Outcome, Section, attempt
from streamgauge.results.report.costs import Costs, Groups, Value, chart
from streamgauge.results.report.degrees import (
    at_common_rate,
    at_own_rate,
    in_cpus,
    is_rate,
    latency_ms,
    line_of,
    lost,
    share_lost,
    state_of,
)
from streamgauge.results.report.formatting import MISSING, between, count, number
from streamgauge.results.report.layout import fill
from streamgauge.results.report.overview import outcome, output
from streamgauge.results.report.run_records import CellRecord, Records, load_of

#: picks a latency run of a cell
Run = Callable[[CellRecord], LatencyRun | None]
_MIB = 2**20


def render(records: Records) -> str:
    costs = Costs(records)
    makers = [_rates, _lost, _work, _latency, _state, *([_delays] if costs.axes.delays else [])]
    sections = [semantics.section(records), *(_whole(make, costs) for make in makers), semantics.words(records)]
    lead = "What events that come out of order cost each engine and state store, and what each does with them."
    meta = [f"run {records.run_id}"]
    return fill(f"What disorder costs: {records.benchmark.name}", lead, meta, _outcome(costs), sections)


def _whole(make: Callable[[Costs], Section], costs: Costs) -> Section:
    """A section, or what is wrong with its records: damaged ones must not cost the page."""
    try:
        return make(costs)
    except Exception as problem:
        name = make.__name__.strip("_")
        why = f"a record is incomplete or damaged: {type(problem).__name__} {problem}"
        return Section(name, name.capitalize(), blocks=[Hole("Not shown", why)])


def _outcome(costs: Costs) -> Outcome:
    """The comparisons at the highest degree, in the file's order."""
    records, last = costs.records, costs.axes.degrees[-1]
    parts = []
    for record in costs.cells:
        if record.cell.experiment == last and (compared := costs.kept(record)):
            parts.append(f"{', '.join(line_of(record))}: {compared.sentence}")
    degree = f"{costs.axes.factors[last]:.4g}\u202f%"
    sentence = f"What {degree} of disorder costs is not known: no process measured it in turns with the least"
    if parts:
        sentence = f"With {degree} of the events out of order, {'; '.join(parts)}"
    whole = outcome(records)
    return Outcome(whole.state, sentence, [one for one in whole.problems if one[0] != "plain"])


def _rates(costs: Costs) -> Section:
    lead = (
        "Each point is the sustainable rate over that of the same engine and state store on the stream "
        f"{costs.order}, so 1 means that disorder costs nothing. The bars are 90\u202f% intervals."
    )
    note = (
        "Both streams were measured in turns in one process, and each ratio is formed within a block of windows. Rates "
        "of two processes are not compared, as fresh processes differ by 3 to 8\u202f%."
    )
    return Section(
        "rates",
        "What of the rate is kept",
        lead,
        [attempt("Rate kept", kept, costs), Note(note), attempt("Rate", _absolute, costs), *not_compared(costs)],
    )


def kept(
    costs: Costs, title: str = "Rate over the rate", name: str = "rate", metric: str = RATE,
    groups: Groups | None = None,
) -> Block:  # fmt: skip
    """Charts a figure over that of the base, where one process measured both in turns. groups: as in `chart`."""

    def more(record: CellRecord) -> list[Cell]:
        compared = costs.kept(record, metric)
        both = between(costs.part_ends(record, metric))
        return [both, *((compared.blocks, compared.processes) if compared else (MISSING, MISSING))]

    return chart(
        costs, f"{title} {costs.order}", f"{name} / {name} {costs.order}", lambda record: costs.part(record, metric),
        ends=lambda record: costs.part_ends(record, metric), columns=("90\u202f% interval", "blocks", "processes"),
        more=more, groups=groups,
    )  # fmt: skip


def _absolute(costs: Costs) -> Block:
    def more(record: CellRecord) -> list[Cell]:
        return [between(record.interval), record.interval_of or MISSING, record.claim.kind, output(record)]

    columns = ("90\u202f% interval", "interval of", "claim", "output")
    return chart(
        costs, "Sustainable rate", "events/s", lambda r: r.rate, ends=lambda r: r.claim.interval, columns=columns,
        more=more,
    )  # fmt: skip


def not_compared(costs: Costs) -> list[Block]:
    """Says which cells have no ratio to the least disordered stream, and why."""
    holes: list[Block] = []
    for record in costs.cells:
        if costs.part(record) is not None or record is costs.base.get(line_of(record)):
            continue
        if not is_rate(record):
            why = record.claim.sentence if record.search else costs.records.why(record.search_status)
        elif compared := costs.kept(record):
            why = compared.reason
        else:
            why = f"no process measured it in turns with {costs.axes.base}; list that experiment first"
        holes.append(Hole(f"Not compared: {record.cell.name}", why))
    return holes


def _lost(costs: Costs) -> Section:
    lead = (
        "An engine that drops late events saves work and gives a smaller answer. Lost: no window of the answer holds "
        "the event. The count is DuckDB's, under the engine's own rule, and counts events for every engine alike."
    )

    def more(record: CellRecord) -> list[Cell]:
        run = lost(record)
        return [
            count(run.late_events if run else None),
            count(run.offered if run else None),
            f"{count(run.late_drops_reported)} {run.late_drops_counted_in or ''}" if run else MISSING,
            semantics.revised(record),
            output(record),
        ]

    columns = ("events lost", "events offered", "the engine counts", "answers revised", "output")
    drawn = attempt("Lost", chart, costs, "Events lost", "lost (% of all events)", lambda r: share_lost(lost(r)),
                    columns=columns, more=more)  # fmt: skip
    return Section("lost", "What is lost or revised", lead, [drawn])


def _work(costs: Costs) -> Section:
    lead = "CPU time of the engine's processes for each event, while events were offered; start and drain are left out."
    charts = [
        attempt("CPU", chart, costs, f"CPU an event at {where}", "CPU-µs an event", _cpu(run))
        for where, run in _loads(costs)
    ]
    notes = [Note(f"{cell}: {cost.sentence}.") for cell, cost in in_cpus(costs.records).items()]
    return Section("work", "What an event costs in CPU", lead, [*charts, *notes, *_left_out(costs)])


def _latency(costs: Costs) -> Section:
    lead = (
        "Event-time latency of the rows of the answer. At a fraction of its own rate each engine is equally loaded. At "
        "one common rate all do the same work, and the faster one idles more. A ratio is of latencies in turns, at one "
        "rate in one process, where the file asks for them."
    )
    charts = [
        attempt("Latency", chart, costs, f"{quantile} latency at {where}", f"{quantile} (ms)",
                lambda r, run=run, quantile=quantile: latency_ms(run(r), quantile), of_time=True)
        for where, run in _loads(costs)
        for quantile in ("p50", "p99")
    ]  # fmt: skip
    return Section("latency", "How late the answers are", lead, [*latencies_kept(costs), *charts, *_left_out(costs)])


def latencies_kept(costs: Costs, groups: Groups | None = None) -> list[Block]:
    """Charts of latencies in turns over those of the base; none where none were measured."""
    return [
        attempt("Latency", kept, costs, f"{quantile} latency over that", quantile, quantile, groups)
        for quantile in ("p50", "p99")
        if any(costs.part(record, quantile) is not None for record in costs.cells)
    ]


def _left_out(costs: Costs) -> list[Block]:
    """Says which latency runs the charts leave out, and why."""
    bad = [(f"{r.cell.name} at {load_of(run)}", run) for r in costs.cells for run in r.latency if not run.is_sound]
    if not bad:
        return []
    return [Hole("Not in these charts", "; ".join(f"{name}: {_why(run)}" for name, run in bad))]


def _why(run: LatencyRun) -> str:
    if run.correct is False:
        return "its answer was wrong"
    if not run.valid:
        return "it is invalid"
    return "it did not settle" if run.doubt else "no row was emitted"


def _loads(costs: Costs) -> list[tuple[str, Run]]:
    """The loads of the latency runs: what they are called, and a cell's run."""
    measured = {run.fraction for cell in costs.cells for run in cell.latency}
    largest = max(measured.intersection(costs.records.benchmark.latency.fractions), default=None)
    own = "its own rate" if largest is None else f"{100 * largest:g}\u202f% of its own rate"
    loads: list[tuple[str, Run]] = [(own, lambda record: at_own_rate(record, largest))]
    if costs.common is not None:
        loads.append((f"{number(costs.common, 'events/s')}", lambda record: at_common_rate(record, costs.common)))
    return loads


def _cpu(run: Run) -> Value:
    return lambda record: one.system_cpu_us_per_event if (one := run(record)) else None


def _state(costs: Costs) -> Section:
    lead = (
        "The largest state that the engine reported in its latency runs. Each engine counts its own way: a ratio of "
        "two engines says little, the growth with disorder says more. Unknown: the engine tells no size."
    )

    def mib(record: CellRecord) -> float | None:
        size, _ = state_of(record)
        return None if size is None else size / _MIB

    def more(record: CellRecord) -> list[Cell]:
        _, rows = state_of(record)
        return [count(rows) if rows is not None else "unknown"]

    blocks = [attempt("State", chart, costs, "Size of the state", "MiB", mib, columns=("rows of state",), more=more)]
    for record in costs.cells:
        if record.cell.experiment == costs.axes.base and record.latency_trials and state_of(record) == (None, None):
            blocks.append(Hole(f"State of {', '.join(line_of(record))}", "unknown: the engine tells no size"))
    return Section("state", "How large the state grows", lead, blocks)


def _delays(costs: Costs) -> Section:
    names = costs.axes.delays
    degree = f"{costs.axes.factors[names[-1]]:.4g}\u202f%"
    lead = (
        f"The same {degree} of the events is out of order, but their longest delay differs. A watermark waits for its "
        "own delay. While the longest delay is shorter, no event can be late; beyond, it decides what is lost."
    )

    x = "longest delay / watermark's delay"
    charts = [
        attempt("Lost", chart, costs, "Events lost by the longest delay", "lost (% of all events)",
                lambda r: share_lost(lost(r)), names=names, x=x, at=costs.times_watermark),
        attempt("Rate", chart, costs, "Rate kept by the longest delay", f"rate / rate {costs.order}", costs.part,
                ends=costs.part_ends, names=names, x=x, at=costs.times_watermark),
    ]  # fmt: skip
    return Section("delays", "How far is late", lead, charts)
