"""The text about a trial: whole lines from small records."""

from __future__ import annotations

from typing import Any

from streamgauge.app.cli.trial_text import trial_lines


def record(
    offered: int, correct: bool | None, system: dict[str, Any], loops: int = 1, **details: Any
) -> dict[str, Any]:
    latency = {"count": 0}
    drivers = [{"loops": loops, "out_of_order": 3}, {"loops": 1, "out_of_order": 2}]
    stream = {"events": 1000, "out_of_order": 200}
    told = {
        "emitted": offered, "system": system, "drivers": drivers, "stream": stream, "event_latency_ns": latency,
        "processing_latency_ns": latency, **details,
    }  # fmt: skip
    observation = {"offered": offered, "taken": offered}
    return {
        "outcome": "sustainable",
        "reason": "so",
        "observation": observation,
        "correct": correct,
        "details": told,
    }


def test_a_jobs_duplicates_its_log_and_the_offered_prefix_are_told() -> None:
    answers = {"answers": 52, "duplicates": 2, "delivery": "at least once", "unchecked": None}
    assert list(trial_lines(record(50, True, {"answers": answers, "log": "logs/x.log"}))) == [
        "verdict     sustainable: so",
        "offered     50   taken 50   emitted 50",
        "output      equals the oracle's answer",
        "answers     52, 2 duplicates: at least once",
        "stream      its first 50 of 1,000 events, 10 % of them out of order; of the whole stream 20 %",
        "job's log   logs/x.log",
    ]


def test_answers_to_the_warm_up_are_counted_too() -> None:
    answers = {"answers": 80, "duplicates": 2, "delivery": "at least once", "unchecked": None}
    assert "answers     80 with those before the trial, 2 duplicates: at least once" in trial_lines(
        record(50, True, {"answers": answers})
    )


def test_the_reason_for_not_checked_is_told() -> None:
    answers = {"answers": 1000, "duplicates": 0, "delivery": None, "unchecked": "there is no answer.sql"}
    found = list(trial_lines(record(1000, None, {"answers": answers})))
    assert found[2:] == ["output      not checked: there is no answer.sql"]
    assert "output      not checked: nobody knows" in trial_lines(record(1000, None, {}, unchecked="nobody knows"))
    assert "output      not checked" in trial_lines(record(1000, None, {}))


def test_a_stream_that_is_too_short_is_told() -> None:
    [line] = [line for line in trial_lines(record(5000, True, {}, loops=5)) if line.startswith("stream")]
    assert line == "stream      too short for this trial: 5 loops of it, each with later times"
