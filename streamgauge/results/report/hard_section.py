"""The page's section on the hard queries: answers, state growth, and what a watermark for each operator changes."""

from __future__ import annotations

from collections.abc import Sequence

from streamgauge.records.answers import Example, HardAnswer, HardBatch, HardQueries, OperatorState
from streamgauge.results.report.blocks import Block, Cell, Chart, Row, Section, Table, Text, attempt
from streamgauge.results.report.charts import SYMBOLS, Trace, axis, figure, line
from streamgauge.results.report.formatting import count, number

END_MS = 10**11  # a watermark beyond this is the sentinel's


def section(records: Sequence[HardQueries]) -> Section:
    """Builds the section from records of answers.hard_queries.record_of, sorted by system and disorder."""
    lead = "Against DuckDB's answers: in batch on all rows, in a few micro-batches on those that no log shows as late."
    parts = [_part(record, nth) for nth, record in enumerate(records)]
    examples = {case.name: case for record in records for case in record.example}
    example = Section(
        "per-operator-watermarks",
        "A watermark for each operator, and one for all",
        "The largest value of each 3 s window, then the sum of two such windows. "
        "An operator emits a window when the "
        "watermark has passed its end; for a second one with the same watermark that row is late.",
        [
            attempt("Side by side", _beside, list(examples.values())),
            *(attempt(name, _case, case) for name, case in examples.items()),
        ],
    )
    return Section("hard-queries", "Hard queries", lead, parts=[*parts, example])


def _part(record: HardQueries, nth: int) -> Section:
    late = f"{record.disorder_percent:g}\u202f%"
    lead = f"{count(record.events)} events, {late} of them late by up to {number(record.longest_delay_s, 's')}."
    blocks: list[Block] = [
        attempt("Answers of the hard queries", _answers, record),
        attempt("State of the hard queries", _state, record),
        attempt("Watermarks of each operator", _watermarks, record),
    ]
    return Section(f"hard-{nth}", f"{record.system}, {late} late", lead, blocks)


def _answers(record: HardQueries) -> Table:
    rows: list[Row] = [
        {
            "query": answer.query,
            "mode": answer.mode,
            "status": Text(answer.status, "good" if answer.status == "correct" else "bad", hint=answer.why or ""),
            "rows": count(answer.rows),
            "hash": Text(answer.hash or "", code=True),
            "time": number(answer.seconds, "s"),
            "late, expected": count(answer.late_drops_expected),
            "late, reported": count(answer.late_drops_reported),
        }
        for answer in record.queries
    ]
    return Table.of(rows, cards=True)


def _streaming(record: HardQueries) -> list[HardAnswer]:
    return [answer for answer in record.queries if answer.batches]


def _state(record: HardQueries) -> Chart:
    """Charts the state rows of each query, all operators together, after each micro-batch; the table adds the bytes."""
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for nth, answer in enumerate(_streaming(record)):
        kept = [sum(operator.rows for operator in batch.operators) for batch in answer.batches]
        marker = {"symbol": SYMBOLS[nth % len(SYMBOLS)]}
        numbers = [batch.batch for batch in answer.batches]
        traces.append(line(answer.query, numbers, kept, nth, mode="lines+markers", marker=marker))
        size = [sum(operator.bytes for operator in batch.operators) for batch in answer.batches]
        rows.append([answer.query, *[f"{count(n)} / {count(b / 1000)}" for n, b in zip(kept, size, strict=True)]])
    width = max((len(row) for row in rows), default=1)
    table = Table(
        ["rows / kB after batch", *map(str, range(width - 1))], [[*row, *[None] * (width - len(row))] for row in rows]
    )
    note = "The last micro-batch holds the sentinel, which ends all state but its own."
    return Chart("State after each micro-batch", figure(traces, axis("micro-batch"), axis("state rows")), table, note)


def _watermarks(record: HardQueries) -> Chart:
    """Charts, for a query with two operators, the watermarks by which each judged late rows and ended state.

    Raises LookupError if no such query has answered.
    """
    answer = next((one for one in _streaming(record) if len(one.batches[0].operators) > 1), None)
    if answer is None:
        raise LookupError("no query with two operators has answered in streaming")
    before_end = [batch for batch in answer.batches if batch.watermark_ms < END_MS]
    numbers = [batch.batch for batch in before_end]
    traces: list[Trace] = []
    rows: list[list[Cell]] = []
    for position in range(len(before_end[0].operators)):
        operators = [batch.operators[position] for batch in before_end]
        for name, times in (
            ("late rows", [operator.late_ms for operator in operators]),
            ("end of state", [operator.eviction_ms for operator in operators]),
        ):
            seconds = [time / 1000 if time else None for time in times]  # 0: none yet
            label = f"operator {position + 1}, {name}"
            traces.append(line(label, numbers, seconds, len(traces), line={"shape": "hv"}))
            rows.append([label, *map(number, seconds)])
    title = f"Watermarks of each operator: {answer.query}"
    table = Table(["watermark (s) in batch", *map(str, numbers)], rows)
    return Chart(title, figure(traces, axis("micro-batch"), axis("watermark (s)")), table)


def _beside(cases: list[Example]) -> Table:
    """Compares the first case with the others that got the same values, batch by batch."""
    alike = [case for case in cases if case.given == cases[0].given]
    rows: list[list[Cell]] = [
        [batches[0].batch, _values(alike[0], batches[0]), *map(_with_losses, batches)]
        for batches in zip(*(case.batches for case in alike), strict=True)
    ]
    columns = ["batch", "values", *(f"result with {case.name}" for case in alike)]
    return Table(columns, rows, "Side by side", cards=True)


def _case(case: Example) -> Table:
    rows: list[list[Cell]] = [
        [batch.batch, _values(case, batch), *map(_operator, batch.operators), _result(batch)] for batch in case.batches
    ]
    columns = ["batch", "values", "first operator", "second operator", "result"]
    return Table(columns, rows, caption=case.name, cards=True)


def _values(case: Example, batch: HardBatch) -> str:
    given = [", ".join(f"{value} at {second}\u00a0s" for value, second in values) for values in case.given]
    given += ["sentinel"] * (len(case.batches) > len(given))
    return given[batch.batch] if batch.input_rows and batch.batch < len(given) else "no rows"


def _result(batch: HardBatch) -> str:
    return "; ".join(f"{row['total']} from {row['groups']} of 2 windows" for row in batch.output) or "nothing"


def _with_losses(batch: HardBatch) -> Cell:
    lost = sum(operator.dropped for operator in batch.operators)
    return Text(f"{_result(batch)}, {lost} lost", "bad") if lost else _result(batch)


def _operator(operator: OperatorState) -> Text:
    late, eviction = map(_moment, (operator.late_ms, operator.eviction_ms))
    lost = f", {operator.dropped} lost" if operator.dropped else ""
    return Text(f"late {late}, ends {eviction}{lost}", "bad" if lost else "plain")


def _moment(milliseconds: int | None) -> str:
    return "—" if milliseconds is None else "the end" if milliseconds >= END_MS else number(milliseconds / 1000, "s")
