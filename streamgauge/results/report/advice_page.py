"""The page of an advice: how long a job shall wait for late events, and what each delay loses."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.units import moment, ticks_per_second
from streamgauge.records.advice import Advice
from streamgauge.results.report.blocks import MISSING, Block, Chart, Code, Hole, Note, Outcome, Section, Table
from streamgauge.results.report.charts import RED, axis, delay_axis, figure, line
from streamgauge.results.report.layout import fill, publish
from streamgauge.streams.advice import words


def write(advice: Advice, source: str, path: Path) -> None:
    """Writes the page of the advice on a source. Raises UserError if it cannot be written."""
    span = advice.event_time
    meta = [
        source,
        f"{advice.events:,} events",
        f"{moment(span.min, advice.tick)} to {moment(span.max, advice.tick)}",
        words.answers(advice.question, advice.tick),
    ]
    outcome = Outcome("open" if advice.advised is None else "good", words.headline(advice), [])
    lead = "How long a job shall wait for late events, and what it loses at each watermark delay."
    publish(path, fill("Watermark delay", lead, meta, outcome, _sections(advice)))


def _sections(advice: Advice) -> list[Section]:
    made = [Section("trade", "Delay and loss", "A longer delay loses less, and answers later.", [_trade(advice)])]
    if advice.lines:
        code: list[Block] = [block for one in advice.lines for block in (Note(one.engine), Code(one.text))]
        made.insert(0, Section("lines", "Lines of code", "They set the delay in a job.", code))
    if advice.rules:
        made.append(Section("rules", "Rules and their tests", words.tests(advice), [_table(words.rules(advice))]))
    if advice.engines:
        lead = "What each engine loses by its own rule, at the stream's own speed."
        rules = {one.engine: one.rule for one in advice.engines}
        notes: list[Block] = [Note(f"{engine}: {rule}") for engine, rule in rules.items()]
        made.append(Section("engines", "Engines", lead, [_table(words.engines(advice)), *notes]))
    made.append(Section("curve", "Delays", "With a watermark after each event.", [_table(words.curve(advice))]))
    if advice.hints:
        made.append(Section("hints", "Hints", blocks=[Note(hint.text) for hint in advice.hints]))
    return made


def _table(rows: list[words.Row]) -> Table:
    header, *body = rows
    return Table(
        list(header), [[text or (name and MISSING) for name, text in zip(header, row, strict=True)] for row in body]
    )


def _trade(advice: Advice) -> Block:
    """Charts the shares lost and wrong over the delay, which a logarithmic axis shows above 0."""
    per_second = ticks_per_second(advice.tick)
    shown = [one for one in advice.curve if one.delay > 0]
    if not shown:
        return Hole("No chart", "no delay above 0 was tried; see the table of delays")
    delays = [one.delay / per_second for one in shown]
    mode = {"mode": "lines+markers"}
    traces = [line("events lost", delays, [100 * one.lost / max(1, advice.events) for one in shown], 0, **mode)]
    if any(one.windows for one in shown):
        wrong = [100 * (one.windows_wrong or 0) / one.windows if one.windows else None for one in shown]
        traces.append(line("answers wrong", delays, wrong, 1, **mode))
    best = advice.advised
    if best is not None and best.delay > 0:
        at = best.delay / per_second
        top = max(y for trace in traces for y in trace["y"] if y is not None)
        traces.append(line("advised", [at, at], [0, top], 3, line={"color": RED, "dash": "dot"}))
    drawn = figure(traces, delay_axis("watermark delay", delays), axis("%", rangemode="tozero"))
    note = "A delay of 0 is in the tables alone."
    return Chart("Share lost and wrong by watermark delay", drawn, _table(words.curve(advice)), note)
