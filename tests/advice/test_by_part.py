"""Advice on each part of a stream: it is the advice on the part's events as a stream of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamgauge.records.advice import PartAdvice, Question
from streamgauge.streams.advice import by_part
from streamgauge.streams.advice.pieces import Stream
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.stages import advise
from streamgauge.streams.stages.workers import Forked
from tests.advice.test_windows import MS

SECOND = 1000 * MS


def streams(events: int) -> tuple[Times, list[str | None], list[str]]:
    """Times in ns of events that come late by up to 2 s in part a, and up to 60 s in all others; parts; keys."""
    draw = np.random.default_rng(7)
    parts = draw.choice(np.array(["a", "b", None]), events, p=[0.5, 0.4, 0.1]).tolist()
    behind = draw.exponential(1.0, events) * np.array([0.4 if part == "a" else 12.0 for part in parts])
    times = ((np.arange(events) * 0.1 - behind) * 1000).astype(np.int64) * MS
    return times, parts, draw.choice(["x", "y"], events).tolist()


def written(file: Path, times: Times, parts: list[str | None], keys: list[str]) -> Path:
    pq.write_table(pa.table({"event_time": times, "part": pa.array(parts, pa.string()), "key": keys}), file,
                   row_group_size=5000)  # fmt: skip
    return file


QUESTIONS = [
    Question(answers="tumbling", length=5 * SECOND, slide=5 * SECOND, target="lost", share=0.02),
    Question(answers="sliding", length=9 * SECOND, slide=3 * SECOND, key="key", target="windows_wrong", share=0.1),
    Question(answers="event", target="lost", share=0.02),
    Question(answers="event"),
    Question(answers="session", length=SECOND // 2, key="key", target="lost", share=0.02),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: f"{one.answers}-{one.target}")
def test_a_part_gets_the_advice_on_its_events_alone(tmp_path: Path, question: Question) -> None:
    times, parts, keys = streams(30_000)
    whole = Stream.of([written(tmp_path / "whole.parquet", times, parts, keys)], question)

    found = by_part.of_stream(whole, "part", "ns")

    assert [one.part for one in found] == ["a", "b", None]
    for one in found:
        rows = [n for n, part in enumerate(parts) if part == one.part]
        file = tmp_path / f"{one.part}.parquet"
        written(file, times[rows], [parts[n] for n in rows], [keys[n] for n in rows])
        advice = advise.of_files(Forked(1), [file], "ns", question)
        assert one == PartAdvice(
            part=one.part, events=len(rows), enough=one.enough, advised=advice.advised, reason=advice.reason
        )
        none_lost = [trade.delay for trade in advice.curve if trade.lost == 0]
        assert one.enough in none_lost
        assert question.answers == "session" or one.enough == min(none_lost)
    assert (found[0].advised is None) == (question.target is None)
    assert found[0].advised is None or found[0].advised.delay < 5 * SECOND
