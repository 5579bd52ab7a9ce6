"""Lines of a job, for each question; test_lines_read.py lets the engines read them."""

from __future__ import annotations

from streamgauge.records.advice import Answers, Question
from streamgauge.streams.advice.lines import lines

S, MS = 10**9, 10**6
DAY = 86_400 * S


def question(answers: Answers, length: int = 0, slide: int = 0, lateness: int = 0) -> Question:
    return Question(answers=answers, length=length, slide=slide, allowed_lateness=lateness)


def test_the_lines_of_each_question() -> None:
    def texts(asked: Question, idle: int | None = None) -> dict[str, str]:
        return {one.engine: one.text for one in lines(asked, 37 * S, "ns", idle=idle)}

    assert texts(question("tumbling", 60 * S, 60 * S), idle=90 * S) == {
        "Spark": '.withWatermark("ts", "37 seconds")',
        "Flink": "WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofSeconds(37))"
        ".withIdleness(Duration.ofSeconds(90))",
        "Flink SQL": "WATERMARK FOR `ts` AS `ts` - INTERVAL '37' SECOND",
        "Kafka Streams": "TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(37))",
    }
    kafka = {
        question("sliding", 60 * S, 10 * S): "TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofSeconds(37))"
        ".advanceBy(Duration.ofSeconds(10))",
        question("session", 30 * S): "SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(30), "
        "Duration.ofSeconds(37))",
        question("join", 3600 * S): "JoinWindows.ofTimeDifferenceAndGrace(Duration.ofHours(1), Duration.ofSeconds(37))",
    }
    assert {asked: texts(asked)["Kafka Streams"] for asked in kafka} == kafka
    assert "Kafka Streams" not in texts(question("event"))
    assert "Kafka Streams" not in texts(question("tumbling", 1500, 1500))
    late = lines(question("tumbling", S, S, lateness=5 * S), 0, "ns", event_time="at")
    assert [one.text for one in late[:4]] == [
        '.withWatermark("at", "0 seconds")',
        "WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ZERO)",
        ".allowedLateness(Duration.ofSeconds(5))",
        "WATERMARK FOR `at` AS `at` - INTERVAL '0' SECOND",
    ]


def test_a_delay_is_whole_milliseconds_rounded_up() -> None:
    assert lines(question("event"), 1, "ps")[0].text == '.withWatermark("ts", "1 millisecond")'
    assert lines(question("event"), 2 * S + 1, "ns")[0].text == '.withWatermark("ts", "2001 milliseconds")'


def test_sql_has_no_word_for_a_thousand_days() -> None:
    assert "Flink SQL" not in {one.engine for one in lines(question("event"), 1000 * DAY, "ns")}
