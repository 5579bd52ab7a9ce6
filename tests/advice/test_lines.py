"""Lines of a job, as the engines themselves read them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streamgauge.bench.engines.flink.settings import HOME
from streamgauge.bench.publish.java_server import jars
from streamgauge.records.advice import Answers, Question
from streamgauge.streams.advice.lines import lines

S, MS = 10**9, 10**6
DAY = 86_400 * S
#: in ns: none, one unit, two digits, three, a fraction, more than an int of milliseconds, none that is whole
DELAYS = (
    0,
    S,
    37 * S,
    3700 * S,
    90 * 60 * S,
    1500 * MS,
    5 * MS,
    7 * DAY,
    400 * DAY,
    40 * DAY + MS,
    999 * DAY + MS,
    1001 * S,
)


def question(answers: Answers, length: int = 0, slide: int = 0, lateness: int = 0) -> Question:
    return Question(answers=answers, length=length, slide=slide, allowed_lateness=lateness)


def test_the_lines_of_each_question() -> None:
    def texts(asked: Question, idle: int | None = None) -> dict[str, str]:
        return {one.engine: one.text for one in lines(asked, 37 * S, "ns", idle=idle)}

    assert texts(question("tumbling", 60 * S, 60 * S), idle=90 * S) == {
        "Spark": '.withWatermark("ts", "37 seconds")',
        "Flink": "WatermarkStrategy.<Event>forBoundedOutOfOrderness(Duration.ofSeconds(37))"
        ".withIdleness(Duration.ofSeconds(90))",
        "Flink SQL": "WATERMARK FOR ts AS ts - INTERVAL '37' SECOND",
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
        "WATERMARK FOR at AS at - INTERVAL '0' SECOND",
    ]


def test_a_delay_is_whole_milliseconds_rounded_up() -> None:
    assert lines(question("event"), 1, "ps")[0].text == '.withWatermark("ts", "1 millisecond")'
    assert lines(question("event"), 2 * S + 1, "ns")[0].text == '.withWatermark("ts", "2001 milliseconds")'


def test_sql_has_no_word_for_a_thousand_days() -> None:
    assert "Flink SQL" not in {one.engine for one in lines(question("event"), 1000 * DAY, "ns")}


def test_spark_reads_its_line(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load()
    logical = spark._jvm.org.apache.spark.sql.catalyst.plans.logical  # type: ignore[union-attr]
    for delay in DELAYS:
        line = lines(question("event"), delay, "ns", "timestamp")[0].text
        column, text = re.fullmatch(r'\.withWatermark\("(\w+)", "(.+)"\)', line).groups()  # type: ignore[union-attr]
        plan = frame.withWatermark(column, text)._jdf.queryExecution().logical()
        assert (text, logical.EventTimeWatermark.getDelayMs(plan.delay())) == (text, delay // MS)


@pytest.mark.usefixtures("flink_is_made")
def test_flink_and_kafka_streams_read_their_lines(tmp_path: Path) -> None:
    asked = (question("tumbling", 60 * S, 60 * S), question("sliding", 60 * S, 10 * S), question("session", 30 * S),
             question("join", 3600 * S))  # fmt: skip
    calls, wanted = list[str](), list[str]()
    for delay in DELAYS:
        ms = delay // MS
        made = {one.engine: one.text for one in lines(asked[0], delay, "ns", idle=90 * S)}
        calls += [f"delay({made['Flink']})", f'sql("{made["Flink SQL"]}")']
        wanted += [str(ms), str(ms)]
        windows = ("60000 60000", "60000 10000", "30000", "3600000 3600000")
        for one, read in zip(asked, windows, strict=True):
            calls.append(f"of({lines(one, delay, 'ns')[-1].text})")
            wanted.append(f"{read} {ms}")
    text = Path(__file__).with_name("Lines.java").read_text()
    (tmp_path / "Lines.java").write_text(
        text.replace("//LINES", "\n".join(f"System.out.println({call});" for call in calls))
    )
    classes = f"{HOME}/pyflink/lib/*:{jars('streams')}/*"
    run = subprocess.run(["java", "-cp", classes, str(tmp_path / "Lines.java")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == wanted
