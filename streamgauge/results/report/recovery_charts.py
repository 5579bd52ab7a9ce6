"""Recovery trials: each begins with a backlog and shows whether the system catches up at its rate."""

from __future__ import annotations

from collections.abc import Iterable

from streamgauge.results.report.blocks import Cell, Chart, State, Table, Text, number, share
from streamgauge.results.report.run_records import CellRecord, Json
from streamgauge.results.report.trials import name_of, outcome_of, over_time, said

OUTPUT: dict[object, Text] = {
    True: Text("right", "good", hint="it equals DuckDB's answer"),
    False: Text("wrong", "bad", hint="it differs from DuckDB's answer: the figure is void"),
}
NOT_COMPARED = Text("not compared", "open")


def table(record: CellRecord) -> Table:
    """Table of the recovery trials: the rate offered, the verdict and its reason, the output."""
    rows: list[list[Cell]] = []
    for nth, trial in enumerate(record.trials, 1):
        rate = trial["rate_events_per_s"]
        rows.append(
            [
                name_of(trial, nth),
                f"{trial.get('purpose', '')} the estimate",
                number(rate),
                share(round(rate / record.rate, 2)) if record.rate else None,
                number(trial.get("behind_s"), "s"),
                _verdict(trial),
                str((trial.get("observation") or {}).get("invalid") or trial.get("reason") or ""),
                OUTPUT.get(trial.get("correct"), NOT_COMPARED),
            ]
        )
    columns = ["trial", "offered", "events/s", "of the rate", "behind at first", "verdict", "reason", "output"]
    return Table(columns, rows, "Recovery trials", cards=True)


def _verdict(trial: Json) -> Text:
    """A trial's verdict, marked by whether it agrees with the estimate: below it a system catches up, above it not."""
    outcome = outcome_of(trial)
    expected = {"below": "sustainable", "above": "unsustainable"}.get(trial.get("purpose", ""))
    state: State = (
        "open" if outcome not in ("sustainable", "unsustainable") else "good" if outcome == expected else "bad"
    )
    hints = {"good": "as the estimate says", "bad": "the estimate says otherwise"}
    return Text(said(trial), state, hint=hints.get(state, ""))


def ages(trials: list[Json]) -> Chart:
    """Charts the age over the time since the first sample, one line per trial."""
    title = "Recovery trials: age of the oldest waiting event"
    return over_time(trials, _ages, title, "age (s)", since="first sample")


def _ages(trial: Json) -> Iterable[tuple[float, float, list[Cell]]]:
    """Yields (seconds, age, no further cells) for the samples by the clock or, without any, for those by the batch."""
    seen = trial.get("observation") or {}
    samples = seen.get("clock") or seen.get("samples") or []
    for sample in samples:
        yield sample["at_s"] - samples[0]["at_s"], sample["age_s"], []
