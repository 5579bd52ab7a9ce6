"""Release checks that end no-go, each for its own reason: a slow candidate, and one that answers wrongly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from streamgauge.app.cli import application
from streamgauge.app.nights import release_check
from streamgauge.base.canonical import has_its_sha256
from streamgauge.base.errors import Outage, UserError
from streamgauge.base.folders import LOCKS
from streamgauge.base.jsonl import read_jsonl
from streamgauge.bench.compare import release_rules
from streamgauge.bench.compare.forms import as_markdown
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.measure import timing
from streamgauge.bench.measure.cell_run import CellRun
from streamgauge.bench.measurements import USUAL
from streamgauge.bench.measurements.catchup import stage
from streamgauge.bench.measurements.scaling import stage as scaling
from streamgauge.catalog.artifacts import Store
from streamgauge.config import RELEASE_RATE, load
from streamgauge.records.release import JudgedSeries, ReleaseCheck, Side
from streamgauge.results.index import Index, default_url, index_run
from streamgauge.results.report.release_page import build
from streamgauge.stats.ab import LEAST
from tests.index.example import judgement_rows
from tests.measure.benches import write_bench

pytestmark = pytest.mark.e2e

PASSED = JudgedSeries(cell="e.all", metric="m", state="passed", reason="", tolerance=0.1)
WRONG = {"spark.sql.streaming.statefulOperator.allowMultiple": "false"}


def test_a_slow_candidate_is_run_again_and_is_no_go_by_its_latency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))  # a lock of our own
    known = {"engine": "known", "trigger": "50ms"}
    bench = write_bench(
        tmp_path,
        systems=[{"name": "old", **known}, {"name": "new", **known, "delay": "1s"}],
        release={
            "rate": 1000, "seconds": 0.3, "warmup_seconds": 0.1, "reruns": 1, "queries": [],
            "tolerance": {"processing_latency_ms_p50": 0.5},
        },
    )  # fmt: skip
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "old", "new", directory)

    assert found.verdict == "no-go"
    assert found.reasons[0].what == "e.all processing_latency_ms_p50"
    assert found.reasons[0].why.startswith("slower by ")
    [series] = found.series
    assert series.ratio is not None
    assert series.ratio > 2
    assert series.noise_floor is not None
    assert (series.n_baseline, series.n_candidate) == (2 * (LEAST + 1), LEAST + 1)
    order = [(one["round"], one["side"]) for one in read_jsonl(directory / "release.jsonl")]
    assert order == [(n, side) for n in range(1, LEAST + 2) for side in ("baseline", "candidate", "control")]

    manifest = json.loads((directory / "manifest.json").read_text())
    assert has_its_sha256(manifest)
    assert manifest["commands"][-1] == "streamgauge release-check manifest.json --baseline old --candidate new"
    again = load(directory / "manifest.json")
    assert (again.systems, again.release) == (bench.benchmark.systems, bench.benchmark.release)
    changed = directory / "changed.json"
    changed.write_text((directory / "manifest.json").read_text().replace('"no-go"', '"go"'))
    with pytest.raises(UserError, match="its sha256 does not match: the file was changed after it was written"):
        load(changed)
    assert "No-go: new" in build(directory).read_text()
    index_run(bench.store.root, "check")
    index = Index(default_url(bench.store.root))
    [check] = judgement_rows(index)
    assert (check["outcome"], check["evidence"]["verdict"], check["evidence"]["candidate"]) == (
        "release_check",
        "no-go",
        "new",
    )
    rows = index.results(metric="processing_latency_ms_p50_at_1000_per_s")
    assert [(row["system"], row["samples"]) for row in rows] == [("old", 2 * (LEAST + 1)), ("new", LEAST + 1)]


@pytest.mark.prove
def test_a_candidate_that_catches_up_more_slowly_is_no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))  # a lock of our own
    monkeypatch.setattr(stage, "STAYS_S", 0.2)
    known = {"engine": "known", "trigger": "50ms", "batch_rows": 500}
    bench = write_bench(
        tmp_path,
        systems=[{"name": "old", **known, "capacity": 10_000}, {"name": "new", **known, "capacity": 6000}],
        search={"max_age": "500ms"},
        catchup={"minutes": 2 / 60},
        release={"rate": 3000, "seconds": 0.3, "warmup_seconds": 0.1, "reruns": 1, "queries": [],
                 "compare": ["catchup"]},
    )  # fmt: skip
    found = release_check.run(bench.benchmark, bench.store, "old", "new", bench.store.run("check"))
    assert (found.verdict, found.reasons[0].what) == ("no-go", "e.all catchup_seconds")
    [series] = found.series
    assert series.ratio is not None
    # 1.5 s of backlog shrinks by 3,000 a second instead of by 7,000
    assert series.ratio == pytest.approx(7 / 3, rel=0.3)


@pytest.mark.prove
def test_a_soak_and_a_scaling_of_each_side_stand_beside_and_their_figures_decide_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))
    monkeypatch.setattr(scaling, "CHECK_S", 1.0)
    known = {"engine": "known", "trigger": "50ms", "capacity": 20_000, "batch_rows": 1000}
    bench = write_bench(
        tmp_path,
        # a leak of both: what a level process of Python still takes is not clear after seconds
        systems=[{"name": "old", **known, "leak": "1 MiB"}, {"name": "new", **known, "leak": "8 MiB"}],
        search={"max_age": "600ms", "window_seconds": 0.2, "proof_steps": 0},
        soak={"minutes": 0.3, "every_seconds": 0.5},
        scaling={"cores": [1, 2], "blocks": 2},
        release={"rate": 1000, "seconds": 0.3, "warmup_seconds": 0.1, "reruns": 1, "queries": [],
                 "compare": ["latency", "soak", "scaling"]},
    )  # fmt: skip
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "old", "new", directory)
    memory = next(one for one in found.beside if one.metric == "soak_resident_memory_per_hour")
    assert (memory.cell, memory.unit, memory.said) == ("e.all", "bytes/h", "higher")
    assert memory.candidate is not None
    assert memory.candidate.value == pytest.approx(3600 * 8 * 2**20, rel=0.15)
    rates = [one for one in found.beside if one.metric.startswith("scaling_rate_at_")]
    assert [one.baseline is not None and one.candidate is not None for one in rates] == [True, True]
    assert {one.state for one in found.reasons if "soak" in one.what or "scaling" in one.what} <= {"note"}
    assert all("soak" not in one.metric for one in found.series)
    assert not (directory / "work").exists()
    assert "soak_resident_memory_per_hour" in build(directory).read_text()
    assert f"beside: e.all {memory.metric} | {memory.text}" in as_markdown(found)


@pytest.mark.prove
def test_a_candidate_that_loses_answers_after_a_kill_is_no_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))
    known = {"engine": "known", "trigger": "50ms", "capacity": 8000, "batch_rows": 1000, "delay": "500ms",
             "restart": "500ms", "reconnect": "30s"}  # fmt: skip
    bench = write_bench(
        tmp_path,
        systems=[{"name": "old", **known, "commits": "answered"}, {"name": "new", **known, "commits": "taken"}],
        search={"max_age": "500ms"},
        recovery={"seconds": 5, "repeats": 1, "faults": ["kill"]},
        release={"rate": 1000, "queries": [], "compare": ["latency", "recovery"]},
    )
    monkeypatch.setattr(release_check._Check, "run", lambda *_: ([], [PASSED]))  # the rounds are measured elsewhere
    directory = bench.store.run("check")
    found = release_check.run(bench.benchmark, bench.store, "old", "new", directory)
    assert (found.verdict, found.line) == ("no-go", "no-go: e.all recovery (kill): correct → wrong")
    wrong = next(one for one in found.beside if one.metric == "recovery_kill_wrong")
    assert wrong.text == "0 → 1 trials: higher"
    assert "correct → wrong" in build(directory).read_text()


@pytest.mark.parametrize("problem", [UserError("no rate counts"), Outage("the measuring lock stays taken")])
def test_what_cannot_be_measured_beside_leaves_the_check_open_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))
    release = {"rate": 1000, "queries": [], "compare": ["latency", "scaling"]}
    systems = [{"name": name, "engine": "known"} for name in ("old", "new")]
    bench = write_bench(tmp_path, systems=systems, scaling={}, release=release)

    def fail(name: str, cell_run: CellRun) -> None:
        if (name, cell_run.cell.system) == ("scaling", "new"):
            raise problem

    monkeypatch.setattr(release_check, "measure", fail)
    monkeypatch.setattr(release_check, "outputs_of", lambda _, name: {name: True})
    monkeypatch.setattr(release_check, "partly_of", lambda *_: {})
    monkeypatch.setattr(release_check._Check, "run", lambda *_: ([], [PASSED]))
    directory = bench.store.run("check")
    release_check.run(bench.benchmark, bench.store, "old", "new", directory)
    kept = ReleaseCheck.read(directory / "release.json", "")
    assert (kept.verdict, kept.series) == ("inconclusive", (PASSED,))
    assert [(one.state, one.what, one.why) for one in kept.reasons] == [
        ("open", "e.all, candidate", f"scaling was not measured: {problem}"),
    ]


def test_a_catch_up_is_compared_only_with_its_section(tmp_path: Path) -> None:
    release = {"rate": 3000, "compare": ["latency", "catchup"]}
    said = r"release\.compare: found catchup, allowed: with a section catchup"
    with pytest.raises(UserError, match=said):
        write_bench(tmp_path, release=release)
    usual = timing.release_seconds(write_bench(tmp_path, release={"rate": 3000}, catchup={}).benchmark, USUAL)
    more = timing.release_seconds(write_bench(tmp_path, release=release, catchup={}).benchmark, USUAL)
    assert more - usual == pytest.approx(3 * 8 * (300 + 10 + 5))  # eight rounds of three sides, with those of suspects


def test_the_ladder_of_a_fresh_process_finds_its_rate(tmp_path: Path) -> None:
    known = {"name": "old", "engine": "known", "capacity": 20_000, "batch_cost": "50ms", "batch_rows": 1000}
    release = {"rate": 1000, "seconds": 0.3, "queries": [], "compare": ["rate"]}
    bench = write_bench(tmp_path, systems=[known], search={"max_age": "1s", "window_seconds": 0.2}, release=release)
    sides: dict[Side, str] = {"baseline": "old", "candidate": "old", "control": "old"}
    one = release_check._Check(bench.benchmark, bench.store, sides, bench.store.run("check"))
    with one._drivers:
        found = one._repetition(("e", "all"), "candidate", 1, 1, ladder=True)
    assert (found.void, found.wrong, found.ladder) == (None, None, True)
    assert found.values == {RELEASE_RATE: pytest.approx(10_000, rel=0.15)}  # a batch takes 50 ms and 50 ms


def test_a_candidate_that_answers_wrongly_is_no_go_before_anything_is_measured(tmp_path: Path) -> None:
    system = {"engine": "spark", "state_store": "rocksdb", "memory": "1g"}
    file = tmp_path / "b.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "wrong",
                "source": {"format": "nexmark", "nexmark": {"events": 200}},
                "experiments": [{"name": "ordered", "target_percent": 0}],
                "workloads": [{"name": "all", "query": "nexmark.q0", "watermark": "5s"}],
                "systems": [{"name": "right", **system}, {"name": "odd", **system, "conf": WRONG}],
                "release": {"rate": 1000, "queries": ["q0", "q7"], "events": 400},
            }
        )
    )
    command = [str(Path(sys.executable).with_name("streamgauge")), "release-check", str(file)]
    command += ["--baseline", "right", "--candidate", "odd", "--json", "--run-id", "check"]
    # a process of its own: its Spark session ends with it, not ours
    done = subprocess.run([*command, "--artifacts", str(tmp_path / "artifacts")], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {(r["kind"], r["state"], r["what"]) for r in found["reasons"]} >= {
        ("answer", "failed", "q7 in streaming"), ("capability", "failed", "tumbling window in streaming"),
    }  # fmt: skip
    assert all("q0" not in reason["what"] for reason in found["reasons"])
    assert found["series"] == []
    assert found["versions"]["odd"]["spark"].startswith("4.")
    rows = read_jsonl(Store(tmp_path / "artifacts").run("check") / "release-answers.jsonl")
    assert {(row["side"], row["query"], row["mode"]) for row in rows if row["status"] != "correct"} == {
        ("candidate", "q7", "streaming")
    }
    assert has_its_sha256(json.loads((Path(found["page"]).parent / "manifest.json").read_text()))


def test_two_engines_are_compared_by_their_outputs_and_the_manifest_tells_how_to_install_both(tmp_path: Path) -> None:
    systems = [{"name": "old", "engine": "spark"}, {"name": "new", "engine": "flink"}]
    plan = {"rate": 1000, "seconds": 0.3, "queries": []}
    bench = write_bench(tmp_path, systems=systems, release=plan)
    directory = bench.store.run("check")
    sides: dict[Side, str] = {"baseline": "old", "candidate": "new", "control": "old"}
    one = release_check._Check(bench.benchmark, bench.store, sides, directory)
    [note] = one._answers()  # the suite is asked of two Sparks alone
    assert (note.state, note.why[:41]) == ("note", "not asked: the suite does not run on flin")
    one.versions = {"old": {"spark": "4.0.1", "java": "17"}, "new": {"flink": "2.3.0"}}
    assert list(one._commands())[2:] == [
        "make spark-env SPARK=4.0.1", "make flink",
        "streamgauge release-check manifest.json --baseline old --candidate new",
    ]  # fmt: skip
    publish = one.publish(release_rules.decide([], []))
    assert publish.versions["new"] == {"flink": "2.3.0"}
    page = build(directory).read_text()
    assert [name in page for name in (">Spark<", ">Java<", ">Flink<", "2.3.0")] == [True] * 4


CELLS = """
name: b
source: {files: data.csv, time: {column: 0, unit: s}, header: false}
experiments: [{name: e, target_percent: 0}]
workloads: [{name: all, query: passthrough}]
systems: [{name: one}, {name: other, engine: known}, {name: gone, python: envs/none/bin/python}]
"""


@pytest.mark.parametrize(
    ("more", "baseline", "candidate", "said"),
    [
        ("", "one", "one", "b: release: this key is missing; a release check needs at least its rate"),
        ("release: {rate: 9}", "no", "one", "--baseline: found 'no', allowed: one, other, gone"),
        ("release: {rate: 9}", "one", "no", "--candidate: found 'no', allowed: one, other, gone"),
        ("release: {rate: 9, repetitions: 3}", "one", "one",
         "release.repetitions: found 3, allowed: at least 4"),
        ("release: {rate: 9, tolerance: {speed: 0.5}}", "one", "one",
         "release.tolerance: found 'speed', allowed: processing_latency_ms_p50, processing_latency_ms_p99, "
         "system_cpu_us_per_event"),
        ("release: {rate: 9, queries: [q99]}", "one", "one",
         "release.queries: found 'q99', allowed: all, or some of q0 to q23"),
        ("release: {rate: 9}", "one", "other",
         "systems.other.engine: found known, which cannot run the queries; set release.queries: []"),
        ("release: {rate: 9}", "one", "gone",
         "systems.gone.python: found {place}/envs/none/bin/python, which does not exist; `make spark-env` builds one"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_no_verdict(
    tmp_path: Path, more: str, baseline: str, candidate: str, said: str
) -> None:
    file = tmp_path / "b.yaml"
    file.write_text(CELLS + more)
    done = CliRunner().invoke(
        application(), ["release-check", str(file), "--baseline", baseline, "--candidate", candidate]
    )
    assert done.exit_code == 3
    line = re.sub(rf"^{file}(:\d+:\d+)?: ", "", done.stderr.strip().removeprefix("streamgauge: "))
    assert line == said.format(place=tmp_path)


def test_an_outage_is_one_line_and_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(*_: Any) -> None:
        raise Outage("measuring lock: another check has held it for 3600 s")

    plan = {"rate": 1000, "seconds": 0.3, "queries": []}
    bench = write_bench(tmp_path, systems=[{"name": "old", "engine": "known"}], release=plan)
    monkeypatch.setattr(release_check, "run", taken)
    command = ["release-check", str(bench.file), "--baseline", "old", "--candidate", "old"]
    done = CliRunner().invoke(application(), [*command, "--artifacts", str(bench.store.root)])
    assert done.exit_code == 3
    told = "streamgauge: worth another try: measuring lock: another check has held it for 3600 s"
    assert [line for line in done.stderr.splitlines() if line.startswith("streamgauge")] == [told]


def test_a_wrong_option_is_no_verdict_either() -> None:
    assert CliRunner().invoke(application(), ["release-check", "b.yaml", "--baseline", "a"]).exit_code == 3
    assert CliRunner().invoke(application(), ["release-check", "--help"]).exit_code == 0


def test_the_example_compares_two_versions_and_two_that_are_bad_on_purpose() -> None:
    benchmark = load(Path(__file__).parents[2] / "configs" / "release.yaml")
    assert [system.name for system in benchmark.systems] == ["spark-4.3.0", "spark-4.2.1", "slow", "wrong"]
    other = benchmark.system("spark-4.2.1")
    assert isinstance(other, SparkSettings)
    assert str(other.python).endswith("/.venvs/spark-4.2.1/bin/python")
