"""Proof trials: each begins with a backlog and shows whether the system catches up at its rate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamgauge.records.trial import MeasuredTrial
from streamgauge.results.report.blocks import Chart, Row, State, Table, Text
from streamgauge.results.report.formatting import number, share
from streamgauge.results.report.measured import answers
from streamgauge.results.report.run_records import CellRecord
from streamgauge.results.report.trials import name_of, outcome_of, over_time, said

#: what a trial on this side of the estimate should show
_EXPECTED = {"below": "sustainable", "above": "unsustainable"}


def table(record: CellRecord) -> Table:
    """Table of the proof trials: the rate offered, the verdict and its reason, the output."""
    rows: list[Row] = [
        {
            "trial": name_of(trial, nth),
            "offered": f"{trial.purpose} the estimate",
            "events/s": number(trial.rate_events_per_s),
            "of the rate": share(round(trial.rate_events_per_s / record.rate, 2)) if record.rate else None,
            "behind at first": number(trial.behind_s, "s"),
            "verdict": _verdict(trial),
            "reason": trial.observation.invalid or trial.reason,
            "output": answers(trial.correct),
        }
        for nth, trial in enumerate(record.trials, 1)
    ]
    return Table.of(rows, "Proof trials", cards=True)


def _verdict(trial: MeasuredTrial) -> Text:
    """A trial's verdict, marked by whether it agrees with the estimate: below it a system catches up, above it not."""
    outcome, expected = outcome_of(trial), _EXPECTED.get(trial.purpose)
    state: State = "good" if outcome == expected else "bad" if outcome in _EXPECTED.values() else "open"
    hints = {"good": "as the estimate says", "bad": "the estimate says otherwise"}
    return Text(said(trial), state, hint=hints.get(state, ""))


def ages(trials: Sequence[MeasuredTrial]) -> Chart:
    """Charts the age over the time since the first sample, one line per trial."""
    title = "Proof trials: age of the oldest waiting event"
    return over_time(trials, _ages, title, "age (s)", since="first sample")


def _ages(trial: MeasuredTrial) -> Iterable[tuple[float, float, Row]]:
    """Yields (seconds, age, no further cells) for the samples by the clock or, without any, for those by the batch."""
    samples = trial.observation.clock or trial.observation.samples
    for sample in samples:
        yield sample.at_s - samples[0].at_s, sample.age_s, {}
