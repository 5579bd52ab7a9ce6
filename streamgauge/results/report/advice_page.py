"""The page of an advice, and the section of a run's page: how long to wait for late events, what each delay loses."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.units import moment
from streamgauge.records.advice import Advice, MeasuredTrade
from streamgauge.results.report import advice_charts, advice_measured
from streamgauge.results.report.advice_charts import table
from streamgauge.results.report.blocks import Block, Code, Hole, Note, Outcome, Section
from streamgauge.results.report.layout import fill, publish
from streamgauge.results.report.run_records import Records
from streamgauge.streams.advice import words

#: most parts that are shown
_PARTS = 100


def write(advice: Advice, source: str, path: Path, measured: MeasuredTrade | None = None) -> None:
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
    sections = _sections(advice)
    if measured is not None:
        sections.insert(1, advice_measured.section(measured, advice))
    publish(path, fill("Watermark delay", lead, meta, outcome, sections))


def _sections(advice: Advice) -> list[Section]:
    sections = [
        Section("trade", "Delay and loss", "A longer delay loses less, and answers later.", advice_charts.trade(advice))
    ]
    if advice.lines:
        code: list[Block] = [block for one in advice.lines for block in (Note(one.engine), Code(one.text))]
        sections.insert(0, Section("lines", "Lines of code", "They set the delay in a job.", code))
    if advice.rules:
        tests = [table(words.rules(advice)), *advice_charts.tests(advice)]
        sections.append(Section("rules", "Rules and their tests", words.tests(advice), tests))
    if advice.engines:
        lead = "What each engine loses by its own rule, at the stream's own speed."
        rules = {one.engine: one.rule for one in advice.engines}
        notes: list[Block] = [Note(f"{engine}: {rule}") for engine, rule in rules.items()]
        sections.append(Section("engines", "Engines", lead, [table(words.engines(advice)), *notes]))
    if advice.by_part:
        more = len(advice.by_part) - _PARTS
        rest = [Note(f"{more:,} more parts are in --json.")] if more > 0 else []
        sections.append(Section("parts", "Parts", words.parts(advice), [table(words.by_part(advice, _PARTS)), *rest]))
    sections.append(Section("curve", "Delays", "With a watermark after each event.", [table(words.curve(advice))]))
    if advice.hints:
        sections.append(Section("hints", "Hints", blocks=[Note(hint.text) for hint in advice.hints]))
    return sections


def section(records: Records) -> Section:
    blocks = list[Block]()
    for workload in records.benchmark.workloads:
        advice = records.advice(workload.name)
        if advice is None:
            why = records.why(records.status("advice", workload=workload.name))
            blocks.append(Hole(f"No advice on {workload.name}", why))
            continue
        blocks.append(Note(f"{workload.name}: {words.of_workload(advice)}"))
        if advice.rules:
            blocks += [*advice_charts.trade(advice), table(words.rules(advice)), *advice_charts.tests(advice)]
    lead = "How long each workload shall wait for late events of the source, and whether its own watermark is enough."
    return Section("advice", "Watermark delay", lead, blocks)
