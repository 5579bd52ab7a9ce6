"""The stage advice: a night says if a stream that drifts has outgrown its workload's delay."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from streamgauge.app.nights import stages
from streamgauge.base.errors import UserError
from streamgauge.bench.measure import advice
from streamgauge.bench.workloads import Spec
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, Promise, load
from streamgauge.records.advice import Question
from streamgauge.records.night import NightLine
from streamgauge.streams.stages import analyze, ingest
from streamgauge.streams.stages.workers import Forked

FILE = """
name: b
source: {files: in.csv, time: {column: t, unit: s}, columns: {k: int64}}
experiments: [{name: as_is, target: source}]
workloads:
  - {name: counts, query: windowed_aggregation, key: k, value: k, window: 10s, watermark: 20s}
  - {name: link, query: discard}
advice: {lost_percent: 5}
"""


def benchmark(folder: Path, later_delay: int) -> Benchmark:
    """A benchmark on events every second, of which one in ten is late: by 15 s, and by another delay in the end."""
    chance, rows = random.Random(1), ["t,k"]
    for n in range(20_000):
        late = (15 if n < 17_000 else later_delay) if chance.random() < 0.1 else 0
        rows.append(f"{1_700_000_000 + n - late},{n % 3}")
    (folder / "in.csv").write_text("\n".join(rows) + "\n")
    (folder / "b.yaml").write_text(FILE)
    return load(folder / "b.yaml")


@pytest.mark.parametrize(("later_delay", "expected"), [(15, []), (60, ["counts"])])
def test_a_night_tells_of_a_stream_that_has_outgrown_its_delay(
    tmp_path: Path, later_delay: int, expected: list[str]
) -> None:
    made, store, workers = benchmark(tmp_path, later_delay), Store(tmp_path / "artifacts"), Forked()
    run = store.run("r")
    ingest.run(workers, made, store)
    analyze.run(workers, made, store)
    for workload in made.workloads:
        with RunLog(run).stage("advice", {"workload": workload.name}) as outcome:
            artifact = advice.run(workers, made, store, workload)
            outcome |= {"artifact": artifact.kind, "key": artifact.key}
        assert advice.run(workers, made, store, workload).key == artifact.key
    last = RunLog(run).latest("advice", workload="counts")
    assert last is not None
    counts = store.need("advice", str(last.key), "advice")
    (asked,) = advice.of(counts).asked_tests
    assert asked.delay == 20 * 10**9
    assert (asked.held == asked.tests) is (not expected)
    lines = list(stages.outgrown(made, store, run))
    assert [line.what for line in lines] == expected
    for line in lines:
        assert isinstance(line, NightLine)
        assert line.state == "outgrown"
        assert line.said.startswith("The stream has outgrown the delay of 20 s: the promise of 5 % held in ")


def test_the_question_is_that_of_the_workload(tmp_path: Path) -> None:
    made = benchmark(tmp_path, 15)
    specs = [Spec.of(workload, made.source.kinds, whole=True) for workload in made.workloads]
    second = 10**9
    assert advice.question_of(specs[0], Promise(lost_percent=5), 1000) == Question(
        answers="tumbling", length=10 * second, slide=10 * second, target="lost", share=0.05
    )
    assert advice.question_of(specs[0], Promise(windows_wrong_percent=5), 1000) == Question(
        answers="tumbling", length=10 * second, slide=10 * second, key="k", target="windows_wrong", share=0.05
    )
    no_question = advice.question_of(specs[1], Promise(lost_percent=5), 1000)
    assert no_question == "discard loses no event, whatever its watermark"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("{lost_percent: 5}", "{}"), "advice: give exactly one of lost_percent, windows_wrong_percent"),
        (("{lost_percent: 5}", "{lost_percent: 0}"), "advice.lost_percent"),
        (("k: int64}}", "k: int64}, order: event_time}"), "advice: found source.order: event_time"),
    ],
)
def test_a_promise_that_cannot_be_judged_is_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    benchmark(tmp_path, 15)
    (tmp_path / "b.yaml").write_text(FILE.replace(*change))
    with pytest.raises(UserError, match=message.replace(".", r"\.")):
        load(tmp_path / "b.yaml")
