"""Asks the command, and an artifact with partitions, what engines lose."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.bench.engines.declared import late_rules
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Source
from streamgauge.records.advice import Question
from streamgauge.streams.advice.engines import Asked, of_artifact
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import ingest
from streamgauge.streams.stages.workers import Forked
from tests.command import Call, run

#: the third event comes 50 s after its window's end in both times; the fourth 50 s in event time, but at once
ROWS = """at,came,kafka_partition
5,5,0
60,60,0
6,61,1
110,61,0
7,61,1
"""


def test_the_command_says_what_each_engine_loses_and_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(ROWS)
    options = ["advise", f"{tmp_path}/events.csv", "--time", "at", "--unit", "s", "--window", "10s", "--delay", "20s"]
    arrival = ["--arrival", "came", "--arrival-unit", "s"]
    told = json.loads(run(Call([*options, *arrival, "--json"])).out)
    assert {one["delay_ns"] for one in told["engines"]} == {20 * 10**9}
    assert [(one["engine"], one["loss"]["events"], one["loss"]["between"]) for one in told["engines"]] == [
        ("Spark", 0, [0, 2]),  # a batch each second: at 61 s it knows what came until 59 s
        ("Flink", 2, [0, 2]),
        ("Kafka Streams", 2, None),
    ]
    assert [(one["engine"], one["text"]) for one in told["lines"]][:1] == [
        ("Spark", '.withWatermark("at", "20 seconds")')
    ]
    text = run(Call(options)).out
    assert "Spark 20 s 1 20 % 0 to 2" in " ".join(text.split())
    assert "  Flink: a watermark every 0.2 s, the least of the partitions' own; an event is lost once" in text
    assert "arrival times are unknown" in text
    several = run(Call([*options, "--delay", "0s"])).out
    assert several.count("Kafka Streams  ") == 2
    assert "withWatermark" not in several, "a job has one delay"


def test_a_topic_s_partitions_are_those_of_the_engines(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text(ROWS)
    source = Source.model_validate(
        {"files": [f"{tmp_path}/events.csv"], "time": {"column": "at", "unit": "s"},
         "columns": {"kafka_partition": "int64"}}
    )  # fmt: skip
    events = ingest.run(Forked(), Scaled(source), Store(tmp_path / "artifacts"), lines=False)
    asked = Asked(Question(answers="tumbling", length=10**10, slide=10**10), 0, "ns")
    lost = {one.engine: one.loss.events for one in of_artifact(late_rules(), events, asked)}
    assert lost == {"Spark": 1, "Flink": 0, "Kafka Streams": 0}
