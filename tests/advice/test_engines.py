"""Compares what a delay loses under each engine's rules with a slow count from the rules in words."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.bench.engines import declared
from streamgauge.records.advice import Answers, ByEngine, Question
from streamgauge.streams.advice.engines import Arrivals, Asked, by_engine
from tests.lateness import slow

S, MS = 1_000_000, 1000
#: in ms: an event time after 1970, and how long after the event before it comes
STREAMS = st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 900)), min_size=1, max_size=30)
KINDS: tuple[Answers, ...] = ("tumbling", "sliding", "session", "join", "event")


PATIENT = """
from streamgauge.bench.driver.system import Adapter
from streamgauge.records.rules import EngineRules, Rules


class Patient(Adapter):
    late_rules = EngineRules("Patient", {"event": Rules(delay_us=2_000_000)})
"""


def question(answers: Answers, lateness: int = 0) -> Question:
    spans = {"tumbling": (2000, 2000), "sliding": (3000, 1000), "session": (700, 0), "join": (500, 0), "event": (0, 0)}
    length, slide = (1_000_000 * ms for ms in spans[answers])
    return Question(answers=answers, length=length, slide=slide, allowed_lateness=lateness * 1_000_000, key="k")


def by_hand(engine: str, asked: Question, delay_ms: int, events: list[slow.Event], keys: list[int]) -> tuple[int, int]:
    """Events lost, and events lost in part, in ms: from the table in docs/engines.md, without the library's rules."""
    late = delay_ms + (asked.allowed_lateness // 1_000_000 if engine == "Flink" else 0)
    pace = {"Spark": (1000, 2, 0), "Flink": (200, 1, None), "Kafka Streams": (0, 1, None)}[engine]
    interval, behind, least = pace
    below = {("Flink", "join"): 1, ("Kafka Streams", "session"): 1}.get((engine, asked.answers), 0)
    marks = slow.watermarks(events, late + below, interval, behind, 1, least, 1)
    length, slide = asked.length // 1_000_000, asked.slide // 1_000_000
    if asked.windows:
        return slow.windowed(events, marks, length, slide)[:2]
    if asked.answers == "session":
        lost = slow.alone(events, marks, length) if engine == "Spark" else slow.joined(events, keys, marks, length)
    else:
        lost = slow.below(events, marks, equal=engine == "Spark")
    return lost, lost


@given(STREAMS, st.sampled_from(KINDS), st.integers(0, 4000), st.sampled_from([0, 500]), st.data())
def test_each_engine_loses_what_its_rule_says(
    rows: list[tuple[int, int]], answers: Answers, delay_ms: int, lateness: int, data: st.DataObject
) -> None:
    events = [*zip((event for event, _ in rows), accumulate(gap for _, gap in rows), strict=True)]
    keys = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    asked = question(answers, lateness if answers in ("tumbling", "sliding") else 0)
    times = np.array(events, np.int64) * MS
    pieces = [Arrivals(times[:, 0], times[:, 1], np.array(keys))]
    if answers != "session":
        pieces = [Arrivals(times[part, 0], times[part, 1]) for part in np.array_split(np.arange(len(events)), 3)]
    found = by_engine(declared.late_rules(), Asked(asked, delay_ms * 1_000_000, "ns"), pieces)
    wanted = {one.engine: by_hand(one.engine, asked, delay_ms, events, keys) for one in found}
    assert {one.engine: (one.loss.events, one.loss.partly) for one in found} == wanted
    spoken_of = {"Spark", "Flink"} | ({"Kafka Streams"} if answers not in ("join", "event") else set())
    assert set(wanted) == spoken_of
    for one in found:
        if one.loss.between:
            assert one.loss.between[0] <= one.loss.events <= one.loss.between[1]
        assert (one.loss.of, one.delay) == (len(rows), delay_ms * 1_000_000)


def lost(found: tuple[ByEngine, ...]) -> dict[str, int]:
    return {one.engine: one.loss.events for one in found}


def test_partitions_have_watermarks_of_their_own_where_the_engine_has_them() -> None:
    """Partition 1 is 10 s behind; its events are late for Spark alone."""
    seconds, partition = np.array([0, 20, 10, 21, 11]), np.array([0, 0, 1, 0, 1])
    piece = Arrivals(seconds * S, np.arange(5) * 60 * S, partition=partition)
    asked = Asked(Question(answers="tumbling", length=10**9, slide=10**9), 0, "ns")
    assert lost(by_engine(declared.late_rules(), asked, [piece], partitions=2)) == {
        "Spark": 2, "Flink": 0, "Kafka Streams": 0,
    }  # fmt: skip
    assert lost(by_engine(declared.late_rules(), asked, [Arrivals(piece.event_us, piece.arrival_us)])) == {
        "Spark": 2, "Flink": 2, "Kafka Streams": 2,
    }  # fmt: skip


def test_without_arrival_times_it_says_so_and_gives_the_range() -> None:
    event_us = np.array([1, 5, 2]) * S
    asked = Asked(Question(answers="event"), 0, "ns")
    spark, flink = by_engine(
        declared.late_rules(), asked, [Arrivals(event_us, np.maximum.accumulate(event_us))], with_arrival=False
    )
    assert (spark.loss.between, flink.loss.between) == ((0, 1), (0, 1))
    assert spark.rule == (
        "a micro-batch every 1 s, judged by the watermark of the one before; an event is lost at the watermark or "
        "below; arrival times are unknown: an event counts as coming when the largest event time so far is reached"
    )
    assert flink.rule.startswith("a watermark every 0.2 s, the least of the partitions' own; an event is lost below")


def test_open_windows_have_the_bytes_that_were_measured() -> None:
    asked = Asked(Question(answers="tumbling", length=10**9, slide=10**9), 0, "ns", most_open=1000)
    piece = Arrivals(np.array([S]), np.array([S]))
    assert {one.engine: one.state_bytes for one in by_engine(declared.late_rules(), asked, [piece])} == {
        "Spark": 286_000, "Flink": 98_000, "Kafka Streams": None,
    }  # fmt: skip


def test_windows_finer_than_an_engine_s_clock_are_not_spoken_of() -> None:
    asked = Asked(Question(answers="tumbling", length=1500, slide=1500), 0, "ns")
    assert by_engine(declared.late_rules(), asked, []) == ()


def test_a_package_s_engine_declares_its_own_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "patient.py").write_text(PATIENT)
    (tmp_path / "patient-1.dist-info").mkdir()
    (tmp_path / "patient-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: patient\nVersion: 1\n")
    points = "[streamgauge.engines]\npatient = patient:Patient\n"
    (tmp_path / "patient-1.dist-info" / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(str(tmp_path))
    rules = declared.late_rules()
    assert [one.title for one in rules] == ["Spark", "Flink", "Kafka Streams", "Patient"]
    piece = Arrivals(np.array([1, 9, 4]) * S, np.arange(3) * S)
    found = by_engine(rules[3:], Asked(Question(answers="event"), 2 * 10**9, "ns"), [piece])
    assert lost(found) == {"Patient": 1}
    assert lost(by_engine(rules[3:], Asked(Question(answers="event"), 3 * 10**9, "ns"), [piece])) == {"Patient": 0}
    monkeypatch.setattr(loaded("patient:Patient", "test"), "late_rules", "a rule")
    with pytest.raises(UserError, match=r"engines\.patient: late_rules: found 'a rule', allowed: EngineRules"):
        declared.late_rules()
