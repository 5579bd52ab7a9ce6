"""Tests that copies of this process and Spark's tasks make the same bytes of every data set."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.config import Experiment
from streamgauge.records.advice import Question
from streamgauge.streams.stages import advise, ingest
from streamgauge.streams.stages.analyze import measure
from streamgauge.streams.stages.generate import write_stream
from streamgauge.streams.stages.tasks import OnSpark
from streamgauge.streams.stages.workers import Forked, Workers
from tests.conftest import DATA, ROOT, unpacked
from tests.spark.ingesting import benchmark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SCHEDULE = {"time": {"column": "sched", "format": "%Y-%m-%d %H:%M:%S"}}
COMMITS: dict[str, Any] = {"time": {"column": 0, "format": "%a, %d %b %Y %H:%M:%S %z"}, "header": False}
SETS: dict[str, tuple[Path, dict[str, Any]]] = {
    "flights, January": (ROOT / "configs" / "data" / "flights_2013_01.csv.gz", {**SCHEDULE, "order": "event_time"}),
    "flights by departure, January": (DATA / "nycflights13_jan_by_actual_departure.csv", SCHEDULE),
    "flights by departure": (DATA / "nycflights13_by_actual_departure.csv.gz", SCHEDULE),
    "earthquakes by update": (DATA / "usgs_quakes_by_update.csv", {"time": {"column": "time_ms", "unit": "ms"}}),
    "commits": (DATA / "commits.txt.gz", {**COMMITS, "separator": "|"}),
}


def made(workers: Workers, root: Path, file: Path, source: dict[str, Any]) -> dict[str, str]:
    """Maps the name of everything that is made from a file to the SHA-256 of its bytes."""
    wanted = benchmark(file, **source)
    events = ingest.run(workers, wanted, Store(root), split_bytes=200_000)
    asked = {"name": "e", "target_percent": 20, "delay": {"max": "2h"}, "on_infeasible": "closest"}
    out = root / "stream"
    out.mkdir()
    stream = write_stream(
        workers, events, wanted.source, Experiment.model_validate(asked), out, outputs={"parquet", "csv", "jsonl"},
        chunk_rows=20_000,
    )  # fmt: skip
    files = {file.name: file.read_bytes() for file in (*events.files(), *out.iterdir())}
    found = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    hour = 3600 * 10**9
    question = Question(answers="tumbling", length=hour, slide=hour, target="lost", share=0.02)
    advice = advise.measure(workers, events, question, [hour])
    profile = measure(workers, events)
    return {
        **found,
        "stream": stream.sha256,
        "profile": profile.model_dump_json(),
        "advice": advice.model_dump_json(),
    }


@pytest.mark.parametrize("name", SETS)
def test_of_every_data_set(spark: SparkSession, tmp_path: Path, name: str) -> None:
    file, source = SETS[name]
    if not file.exists():
        file = unpacked(file.name, tmp_path)
    here = made(Forked(2), tmp_path / "here", file, source)
    assert here == made(OnSpark(spark), tmp_path / "spark", file, source)
    assert {"stream.csv", "stream.jsonl"} < here.keys()
