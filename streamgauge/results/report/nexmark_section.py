"""The page's section on the Nexmark suite and the hard queries.

It shows what works, what does not and why, the slowest queries, and every answer with its size and hash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from streamgauge.bench.answers.capabilities import HARD, SUITE, capabilities
from streamgauge.bench.answers.systems import asked
from streamgauge.records.answers import MODES, Ability, AnswerLine, FeatureAbility, Mode, QueryAbility
from streamgauge.results.report.blocks import Block, Cell, Row, Section, State, Table, Text, attempt
from streamgauge.results.report.degrees import out_of_order_percent
from streamgauge.results.report.formatting import count, number
from streamgauge.results.report.run_records import Records

SLOWEST = 8
_MARK: dict[str, State] = {"works": "good", "correct": "good", "unchecked": "open", "not run": "open"}
AnyAbility = QueryAbility | FeatureAbility


def expected(records: Records) -> list[AnswerLine]:
    """Answers that the stage nexmark should leave, each with the reason why it is missing."""
    system = asked(records.benchmark)[0].name
    percents = {s.experiment.name: out_of_order_percent(s) for s in records.streams}
    return [
        AnswerLine(
            query=query, mode=mode, system=system, status="not run", why=records.why(status),
            disorder_percent=percents[status.scope["experiment"]],
        )
        for status in records.suites
        for mode in MODES
        for query in (*(records.benchmark.suite.queries or SUITE), *HARD)
    ]  # fmt: skip


def section(answers: Sequence[AnswerLine], wanted: Sequence[AnswerLine] = ()) -> Section:
    """Builds the section from the lines of nexmark.jsonl; one of `wanted` stands in for one that is missing there."""
    lead = (
        "The queries of the online auction and the hard queries, against DuckDB's answers: in batch on all rows, in "
        "streaming on those that the run's logs do not show as late."
    )
    last = list({(one.query, one.mode, *_which(one)): one for one in (*wanted, *answers)}.values())
    first = last[0].system
    ordered = sorted(last, key=lambda one: (one.system != first, *_which(one)))
    blocks: list[Block] = [
        *matrices(last),
        attempt("Slowest queries", _slowest, [one for one in last if one.system == first]),
        *(
            attempt("Answers", _answers, list(some), system, percent, system != first)
            for (system, percent), some in groupby(ordered, _which)
        ),
    ]
    return Section("nexmark", "Nexmark", lead, blocks)


def _which(one: AnswerLine) -> tuple[str, float]:
    return one.system, one.disorder_percent


def matrices(answers: Sequence[AnswerLine]) -> list[Block]:
    """Tables of what each system can do, by feature and by query, and of why the rest does not work."""
    matrix = capabilities(answers)
    bad = [one for one in matrix.queries if one.status != "works"]
    features = [(one.feature, one) for one in matrix.features]
    queries = [(one.query.removeprefix("nexmark."), one) for one in matrix.queries]
    return [
        attempt("Capabilities by feature", _matrix, features, "feature"),
        attempt("Capabilities by query", _matrix, queries, "query"),
        *([attempt("What does not work", _reasons, bad)] if bad else []),
    ]


def _matrix(abilities: Sequence[tuple[str, AnyAbility]], what: str) -> Table:
    """Table with a row per query or feature and a column per system."""
    systems = list(dict.fromkeys(one.system for _, one in abilities))
    by_name: dict[str, dict[str, list[AnyAbility]]] = {}
    for name, one in abilities:
        by_name.setdefault(name, {}).setdefault(one.system, []).append(one)
    rows: list[list[Cell]] = [
        [name, *(_modes(of[system]) if system in of else None for system in systems)] for name, of in by_name.items()
    ]
    return Table([what, *systems], rows, f"Supported in batch and in streaming, by {what}")


def _modes(abilities: Sequence[AnyAbility]) -> Text:
    """Status in both modes if it is the same, else a status with its mode: "unsupported in streaming"."""
    unlike = [one for one in abilities if one.status != "works"] or abilities
    both = len(unlike) == len(MODES) and len({one.status for one in unlike}) == 1
    text = unlike[0].status if both else ", ".join(f"{one.status} in {one.mode}" for one in unlike)
    marks = {_MARK.get(one.status, "bad") for one in unlike}
    state: State = "bad" if "bad" in marks else "open" if "open" in marks else "good"
    return Text(text, state, hint="; ".join(one.why for one in unlike if one.why))


def _reasons(abilities: Sequence[QueryAbility]) -> Table:
    """Table of what does not work; queries with the same reason share a row. Long names may break at dots and "_"."""
    alike: dict[tuple[str, Mode, Ability, str | None], list[str]] = {}
    for one in abilities:
        key = one.system, one.mode, one.status, one.why
        alike.setdefault(key, []).append(one.query.removeprefix("nexmark."))
    rows: list[list[Cell]] = [
        [", ".join(queries), system, mode, _status(status, None), re.sub(r"(?<=[._])", "\u200b", why or "")]
        for (system, mode, status, why), queries in alike.items()
    ]
    return Table(["query", "system", "mode", "status", "why"], rows, "What does not work", cards=True)


def _slowest(answers: Sequence[AnswerLine]) -> Table:
    timed = sorted((one for one in answers if one.seconds), key=lambda one: -(one.seconds or 0))[:SLOWEST]
    rows: list[list[Cell]] = [
        [one.query, one.mode, f"{one.disorder_percent:g}\u202f%", number(one.seconds, "s"), count(one.events_per_s)]
        for one in timed
    ]
    return Table(["query", "mode", "out of order", "time", "events/s"], rows, "Slowest queries")


def _answers(answers: Sequence[AnswerLine], system: str, percent: float, fold: bool) -> Table:
    rows: list[Row] = [
        {
            "query": one.query,
            "mode": one.mode,
            "status": _status(one.status, one.why),
            "rows": count(one.rows),
            "bytes": count(one.output_bytes),
            "hash": Text((one.hash or "")[:12], code=True, hint=one.hash or ""),
            "time": number(one.seconds, "s"),
            "events/s": count(one.events_per_s),
            "late / dropped": _late(one),
        }
        for one in answers
    ]
    caption = f"Answers of {system}, {percent:g}\u202f% out of order"
    return Table.of(rows, "" if fold else caption, cards=True, folded=caption if fold else "")


def _status(status: str, why: str | None) -> Text:
    return Text(status, _MARK.get(status, "bad"), hint=why or "")


def _late(one: AnswerLine) -> Text:
    """Number of late drops expected / number that the engine reported."""
    counts = f"{count(one.late_drops_expected)} / {count(one.late_drops_reported)}"
    return Text(counts, hint=f"counted in {one.late_drops_counted_in}")
