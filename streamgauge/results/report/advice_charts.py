"""Charts of an advice: what each delay loses, how long answers wait, and when a promise was broken."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from streamgauge.base.units import Tick, moment, ticks_per_second
from streamgauge.records.advice import Advice, Tested, Trade
from streamgauge.results.report import charts
from streamgauge.results.report.blocks import Block, Cell, Chart, Note, Table, Text
from streamgauge.results.report.charts import GREY, INK, PURPLE, RED, Axis, Trace, axis, delay_axis, figure, line
from streamgauge.results.report.formatting import MISSING
from streamgauge.streams.advice import promise, words

#: fewer delays than these do not make a curve on a logarithmic axis
_FEW = 3


def table(rows: list[words.Row]) -> Table:
    header, *body = rows
    # a Text is not broken into lines
    cells: list[list[Cell]] = [
        [Text(text or (name and MISSING)) for name, text in zip(header, row, strict=True)] for row in body
    ]
    return Table(list(header), cells)


def trade(advice: Advice) -> list[Block]:
    """Charts what is lost and how long answers wait over the delay, with the delays that have a name."""
    if all(one.delay == 0 for one in advice.curve):
        return [Note("No event is lost at a delay of 0.")]
    scale = Scale.of(advice)
    lost = [100 * one.lost / max(1, advice.events) for one in scale.shown]
    traces = [line("events lost", scale.delays, lost, 0, mode="lines+markers")]
    if any(one.windows for one in scale.shown):
        wrong = [100 * (one.windows_wrong or 0) / one.windows if one.windows else None for one in scale.shown]
        traces.append(line("answers wrong", scale.delays, wrong, 1, mode="lines+markers"))
    top = max(y for trace in traces for y in trace["y"] if y is not None)
    traces += scale.marks(advice, 0, top)
    drawn = figure(traces, scale.axis, axis("%", rangemode="tozero"))
    blocks: list[Block] = [
        Chart("Share lost and wrong by watermark delay", drawn, table(words.curve(advice)), scale.note)
    ]
    waits = {
        "half of the answers": [one.wait and one.wait.p50 for one in scale.shown],
        "99 of 100 answers": [one.wait and one.wait.p99 for one in scale.shown],
    }
    # a logarithmic axis has no zero
    seconds = {name: [ticks / scale.per_second if ticks else None for ticks in some] for name, some in waits.items()}
    known = [wait for some in seconds.values() for wait in some if wait]
    if known:
        traces = [
            line(name, scale.delays, some, n, mode="lines+markers") for n, (name, some) in enumerate(seconds.items())
        ]
        traces += scale.marks(advice, min(known), max(known))
        note = "From a window's end to the event that closes it, in event time."
        drawn = figure(traces, scale.axis, delay_axis("answer after", known))
        blocks.append(Chart("How long answers wait by watermark delay", drawn, table(words.curve(advice)), note))
    return blocks


@dataclass(frozen=True)
class Scale:
    """The delays of a chart: on a logarithmic axis above 0, or from 0 on where there are few."""

    shown: tuple[Trade, ...]
    per_second: int
    logarithmic: bool

    @classmethod
    def of(cls, advice: Advice) -> Scale:
        above = tuple(one for one in advice.curve if one.delay > 0)
        logarithmic = len(above) >= _FEW
        return cls(above if logarithmic else advice.curve, ticks_per_second(advice.tick), logarithmic)

    @property
    def delays(self) -> list[float]:
        return [one.delay / self.per_second for one in self.shown]

    @property
    def axis(self) -> Axis:
        if self.logarithmic:
            return delay_axis("watermark delay", self.delays)
        return axis("watermark delay (s)", rangemode="tozero")

    @property
    def note(self) -> str:
        return "A delay of 0 is in the tables alone." if self.logarithmic else ""

    def marks(self, advice: Advice, low: float, high: float) -> list[Trace]:
        """Upright lines at the delays that have a name."""
        styles = {"advised": (RED, "solid"), "asked": (PURPLE, "dash"), "naive": (GREY, "dot")}
        traces: dict[str, Trace] = {}
        for name, delay in words.marks(advice):
            if delay or not self.logarithmic:
                colour, dash = styles[name]
                one = traces.setdefault(name, line(name, [], [], line={"color": colour, "dash": dash}))
                one["x"] += [delay / self.per_second, delay / self.per_second, None]
                one["y"] += [low, high, None]
        return [*traces.values()]


def tests(advice: Advice) -> list[Block]:
    """Charts what the tested blocks lost over time: by the advised rule, or the best one, and by the naive one."""
    naive, best = advice.rules[0], promise.best_of(advice.rules)
    if advice.advised is not None:
        best = next(one for one in advice.rules if one.rule == advice.advised.rule)
    if best is None:
        return []
    share = advice.question.share or 0.0
    every = [(rule, one) for rule in (best, naive) for one in rule.realised]
    moments = _reached(best, advice.tick)
    losses = [100 * one.share for one in best.realised]
    broken = [n for n, one in enumerate(best.realised) if one.share > share]
    points = {"mode": "markers", "marker": {"symbol": "x", "size": 10, "color": RED}}
    traces = [
        line(
            "naive",
            _reached(naive, advice.tick),
            [100 * one.share for one in naive.realised],
            line={"color": GREY, "dash": "dot"},
        ),
        line(best.rule, moments, losses, 0, mode="lines+markers"),
        line("broken", [moments[n] for n in broken], [losses[n] for n in broken], 3, **points),
        line("promise", [moments[0], moments[-1]], [100 * share] * 2, line={"color": INK, "dash": "dash"}),
    ]
    first = min(one.span.min for _, one in every)
    drawn = figure(traces, charts.moment_axis(first, advice.tick), axis("lost in the block (%)", rangemode="tozero"))
    rows: list[list[Cell]] = [
        [
            Text(moment(one.span.min, advice.tick)), Text(words.show_exact(one.delay, advice.tick)),
            words.percent(one.share), "held" if one.share <= share else "broken", rule.rule,
        ]
        for rule, one in every
    ]  # fmt: skip
    table = Table(["block from", "delay", "lost", "promise", "rule"], rows)
    note = "Each point is a block, tested at the delay which the blocks before it had given; it stands at the "
    note += "largest event time so far."
    return [Chart("Loss in each block against the promise", drawn, table, note)]


def _reached(rule: Tested, tick: Tick) -> list[str | float]:
    """The largest event time up to each block that the rule was tested on: blocks may overlap in event time."""
    return [charts.moment(ticks, tick) for ticks in accumulate((one.span.max for one in rule.realised), max)]
