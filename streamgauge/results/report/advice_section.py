"""The page's section on how long each workload shall wait for late events of the source."""

from __future__ import annotations

from streamgauge.results.report import advice_charts
from streamgauge.results.report.advice_charts import table
from streamgauge.results.report.blocks import Block, Hole, Note, Section
from streamgauge.results.report.run_records import Records
from streamgauge.streams.advice import words


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
