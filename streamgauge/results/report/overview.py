"""The head of the page: what passed, what failed and why, what is missing; one row per experiment and per cell."""

from __future__ import annotations

from collections.abc import Iterable

from streamgauge.base.words import FEW, THIN, counted, first_of
from streamgauge.records.manifests import StreamManifest
from streamgauge.results.report.blocks import Block, Cell, Outcome, Row, Section, State, Table, Text, attempt
from streamgauge.results.report.degrees import comparisons, wanted
from streamgauge.results.report.formatting import MISSING, between, count, number, percent
from streamgauge.results.report.metric_names import for_people
from streamgauge.results.report.model import limited_by
from streamgauge.results.report.run_records import CellRecord, Records, Status, Stream, load_of, one_line

_OUTPUT: dict[str, State] = {"right": "good", "wrong": "bad"}
_MARK: dict[str, State] = {"done": "good", "failed": "bad", "unfinished": "open", "missing": "open"}


def outcome(records: Records) -> Outcome:
    """Outcome of the run: good only if every stage is done, every stream is validated and no cell is in doubt."""
    problems = [
        (_MARK[s.outcome], s.what, s.reason)
        for s in expected(records)
        if s.outcome != "done" and not records.blocker(s)
    ]
    for stream in records.streams:
        if stream.validate.outcome == "done" and stream.validated != "passed":
            failed = [one.name for one in stream.validation.failed] if stream.validation else []
            reason = f"expectations failed: {', '.join(failed)}" if failed else "no result of the validation was found"
            problems.append(("bad" if failed else "open", f"validate {stream.experiment.name}", reason))
    problems += [problem for record in records.cells for problem in _doubts(record)]
    problems += _notes(records.cells)
    passed = sum(stream.validated == "passed" for stream in records.streams)
    sentence = f"{_of(passed, len(records.streams), 'experiment')} validated"
    if records.cells:
        proven = sum(cell.proven for cell in records.cells)
        sentence += f", {_of(proven, len(records.cells), 'rate')} proven"
    sentence = sentence[0].upper() + sentence[1:]
    states = {state for state, _, _ in problems}
    state: State = "bad" if "bad" in states else "open" if "open" in states else "good"
    return Outcome(state, sentence, problems)


def expected(records: Records) -> Iterable[Status]:
    """Yields the status of the stages that decide the outcome: all but turns, and those that follow cells."""
    yield records.status("ingest")
    yield records.status("analyze")
    for workload in records.benchmark.workloads if records.benchmark.advice is not None else ():
        yield records.status("advice", workload=workload.name)
    for stream in records.streams:
        yield stream.generate
        yield stream.validate
    yield from records.suites
    for cell in records.cells:
        for name in records.benchmark.sections:
            yield records.status(name, **cell.cell.model_dump())


def summary(records: Records) -> Section:
    blocks: list[Block] = [_experiments(records.streams)]
    if records.cells:
        blocks.append(_cells(records.cells))
    if any(record.search and record.search.compared for record in records.cells):
        blocks.append(attempt("Comparisons", _comparisons, records))
    return Section("summary", "Summary", blocks=blocks)


def _experiments(streams: list[Stream]) -> Table:
    rows: list[Row] = []
    for stream in streams:
        e, m = stream.experiment, stream.manifest
        rows.append(
            {
                "experiment": Text(e.name, href=f"#experiment-{e.name}"),
                "target": wanted(e),
                "achieved": _achieved(m) if m else Text(MISSING, "open", hint="no stream"),
                "events": count(m.events if m else None),
                "newly delayed": count(m.newly_delayed if m else None),
                "sha256": Text(m.sha256[:12], code=True, hint=m.sha256) if m else MISSING,
                "validation": _validated(stream),
            }
        )
    return Table.of(rows, "Experiments", cards=True)


def _achieved(m: StreamManifest) -> Text:
    text, target = percent(m.achieved_out_of_order, m.events), count(m.target_out_of_order)
    if m.achieved_out_of_order == m.target_out_of_order:
        return Text(text, "good", hint="exactly the target")
    return Text(text, "open", hint=f"target {target}, achieved {counted(m.achieved_out_of_order, 'event', THIN)}")


def _validated(stream: Stream) -> Text:
    if stream.validated == "passed":
        return Text("passed", "good")
    if stream.generate.outcome == "failed":
        return Text("no stream", "bad", hint=stream.generate.reason)
    if stream.validated == "failed":
        return Text("failed", "bad", hint=stream.validate.reason)
    return Text("not run" if stream.validate.outcome == "missing" else "no result", "open", hint=stream.validate.reason)


def _cells(cells: list[CellRecord]) -> Table:
    rows: list[Row] = []
    for record in cells:
        cell, (limit, meaning) = record.cell, limited_by(record.search)
        top = record.top_run
        p99 = f"{number(top.event_latency.p99_ms, 'ms')} at\u00a0{load_of(top)}" if top else MISSING
        covers = f"of {record.interval_of}".replace(" ", "\u00a0") if record.interval_of else ""
        rows.append(
            {
                "experiment": Text(cell.experiment, href=f"#cell-{cell.name}"),
                "workload": cell.workload,
                "system": cell.system,
                "rate (events/s)": _rate(record),
                "claim": record.claim.kind if record.search else MISSING,
                "90\u202f% interval": f"{between(record.interval)} {covers}".rstrip(),
                "limited by": Text(limit, hint=meaning) if limit else MISSING,
                "p99 latency": p99,
                "output": output(record) if record.search else MISSING,
            }
        )
    return Table.of(rows, "Cells", cards=True)


def _comparisons(records: Records) -> Table:
    """Ratios of figures that one process measured in turns."""
    rows: list[list[Cell]] = []
    for one in comparisons(records):
        names = (one.experiment, one.against, one.workload, one.system, for_people(one.metric))
        ends = (one.ratio, *(one.interval or (None, None)))
        shown = (MISSING if end is None else f"{end:.4f}" for end in ends)
        rows.append([*names, *shown, one.blocks, one.processes, one.reason or MISSING])
    columns = ["experiment", "against", "workload", "system", "metric", "ratio", "90\u202f% from", "to"]
    return Table([*columns, "blocks", "processes", "not known because"], rows, "Comparisons", cards=True)


def output(record: CellRecord) -> Text:
    """Result of comparing a cell's outputs, with the parts that were wrong."""
    parts = f": {first_of(record.wrong)}" if record.wrong else ""
    return Text(f"{record.output}{parts}", _OUTPUT.get(record.output, "open"))


def _rate(record: CellRecord) -> Text:
    if record.rate:
        return Text(number(record.rate), "good" if record.proven else "open", hint=record.claim.sentence)
    status = record.search_status
    state = "bad" if status.outcome == "done" else _MARK[status.outcome]  # it ended without one
    return Text(MISSING, state, hint=status.reason or record.claim.sentence)


def _doubts(record: CellRecord) -> list[tuple[State, str, str]]:
    """Lists the problems of a finished cell: no rate, a wrong output, an unusable latency run."""
    name, problems = record.cell.name, list[tuple[State, str, str]]()
    if record.claim.kind == "wrong":
        problems.append(("bad", f"search {name}", "the output of a proof trial was wrong: the rate is void"))
    elif record.search_status.outcome == "done" and not record.rate:
        problems.append(("bad", f"search {name}", record.claim.sentence))
    for run in record.latency:
        which = f"latency {name} at {load_of(run)}"
        reason = one_line(run.reason)
        if run.correct is False:
            problems.append(("bad", which, "the output differs from DuckDB's answer: the figure is void"))
        elif not run.valid:
            problems.append(("open", which, reason or "invalid without a reason"))
        elif run.doubt:
            problems.append(("open", which, f"{run.doubt}: {reason or 'no reason given'}"))
    wrong = [part for part, correct in record.further_outputs.items() if correct is False]
    problems += [("bad", f"{part} of {name}", "the answers were wrong") for part in wrong]
    return problems


def _notes(cells: list[CellRecord]) -> list[tuple[State, str, str]]:
    """Lists the doubts of searches; cells with the same doubt share a line, and plain remarks come last."""
    names_of: dict[tuple[State, str], list[str]] = {}
    for record in cells:
        claim, name = record.claim.sentence, record.cell.name
        if record.rate and not record.proven:
            names_of.setdefault(("open", claim), []).append(name)
        for doubt in record.search.doubts if record.search else ():
            if doubt.sentence not in claim:
                names_of.setdefault(("plain" if doubt.is_plain else "open", one_line(doubt.sentence)), []).append(name)
    lines: list[tuple[State, str, str]] = [
        (state, f"search {_named(names, len(cells))}", sentence) for (state, sentence), names in names_of.items()
    ]
    return sorted(lines, key=lambda line: line[0] == "plain")


def _named(names: list[str], all_of_them: int) -> str:
    return f"all {all_of_them} cells" if len(names) == all_of_them > FEW else first_of(names)


def _of(part: int, whole: int, what: str) -> str:
    if whole == 1:
        return f"the {what} is" if part else f"the {what} is not"
    if part == whole:
        return f"{'both' if whole == 2 else f'all {whole}'} {what}s"
    return f"{part or 'none'} of {whole} {what}s"
