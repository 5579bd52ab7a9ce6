"""Artifacts on an S3-compatible store, which has no rename, no append and no lock."""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamgauge.app.cli.planning import plan_of
from streamgauge.base import places
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import append_json, delete_log, log_bytes, read_jsonl, sealed, write_record
from streamgauge.base.places import Remote, place
from streamgauge.catalog import artifacts
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import Benchmark, load
from streamgauge.results.index import garbage_collection
from streamgauge.results.report import build
from streamgauge.streams.keys import events_key
from streamgauge.streams.stages import analyze, generate, ingest, validate
from streamgauge.streams.stages.tasks import OnSpark
from tests.conftest import ROOT
from tests.stores import object_store

pytestmark = pytest.mark.spark
SUITES = ROOT / "expectations"


@pytest.fixture(scope="module")
def root(spark: Any) -> Iterator[str]:
    """s3://bucket/prefix; the environment says where that is."""
    with object_store() as (url, variables), pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setitem(spark.sparkContext.environment, name, value)  # as a session that starts now would
        yield url


def benchmark(folder: Path) -> Benchmark:
    """1500 lines in disorder, two of them bad."""
    draw = random.Random(7)
    lines = [f"{i + draw.choice((0, 0, 0, -40))},user{i % 7},{i * i}" for i in range(1500)]
    lines[3], lines[1200] = "what,is,this", ""
    (folder / "events.csv").write_text("\n".join(["t,who,amount", *lines]) + "\n")
    (folder / "tiny.yaml").write_text(
        "name: tiny\n"
        "source:\n"
        "  files: events.csv\n"
        "  time: {column: t, unit: s}\n"
        "  columns: {who: string, amount: int64}\n"
        "  order: event_time\n"
        "  max_bad_fraction: 0.1\n"
        "experiments: [{name: late, target_percent: 20, delay: {max: 30s}, seed: 5, outputs: [parquet, csv]}]\n"
    )
    return load(folder / "tiny.yaml")


def ingested(spark: Any, tiny: Benchmark, store: Store) -> Artifact:
    garbage_collection.require_budget(store, tiny.retention.disk_budget, keep_runs=tiny.retention.keep_runs)
    return ingest.run(OnSpark(spark), tiny, store, split_bytes=8000)


def batch(spark: Any, tiny: Benchmark, store: Store, *without: str) -> dict[str, Any]:
    """Runs the stages before measuring, as the jobs do; returns each one's artifact."""
    [experiment] = tiny.experiments
    run = RunLog(store.run("night"))
    stages: dict[str, Callable[[], Any]] = {
        "ingest": lambda: ingested(spark, tiny, store),
        "analyze": lambda: analyze.run(OnSpark(spark), tiny, store),
        "generate": lambda: generate.run(OnSpark(spark), tiny, store, experiment, chunk_rows=300),
        "validate": lambda: validate.run(spark, tiny, store, experiment, SUITES, run.path),
    }
    made: dict[str, Any] = {}
    for stage, work in stages.items():
        if stage in without:
            continue
        scope = {"experiment": "late"} if stage in ("generate", "validate") else {}
        with run.stage(stage, scope) as outcome:
            made[stage] = work()
            outcome |= {"artifact": made[stage].kind, "key": made[stage].key, "reused": made[stage].reused}
    return made


def test_the_batch_half_makes_on_a_store_what_it_makes_on_a_disk(spark: Any, root: str, tmp_path: Path) -> None:
    tiny, root = benchmark(tmp_path), f"{root}/alone"  # the other tests leave files that a lost race leaves
    here = batch(spark, tiny, Store(tmp_path / "artifacts"), "validate")
    there = batch(spark, tiny, Store(root))
    page = build(tiny, Store(root), "night")

    for stage, own in here.items():
        assert there[stage].key == own.key
        assert not there[stage].reused
    mine, theirs = here["generate"].manifest, there["generate"].manifest
    names = {"files", "csv_files", "digests"}
    assert {k: v for k, v in theirs.items() if k not in {"folder", *names}} == {
        k: v for k, v in mine.items() if k not in names
    }
    assert mine["achieved_out_of_order"] == mine["target_out_of_order"] == 300
    events = [[pq.read_table(places.opened(f)) for f in side["ingest"].files()] for side in (here, there)]
    assert events[0] == events[1]
    profiles = [json.loads((side["analyze"].path / "profile.json").read_text()) for side in (here, there)]
    assert profiles[0] == profiles[1]
    csv = [(side["generate"].path / side["generate"].manifest["csv_files"][0]).read_bytes() for side in (here, there)]
    assert csv[0] == csv[1]
    assert csv[0].count(b"\n") == 1 + 1498
    assert there["validate"].manifest["failed"] == []
    assert str(page) == f"{root}/runs/night/index.html"
    assert 'href="validation-late/docs/index.html"' in page.read_text()
    assert (page.parent / "validation-late" / "docs" / "index.html").exists()

    again = batch(spark, tiny, Store(root))
    assert all(artifact.reused for artifact in again.values())
    unnamed = [
        str(file)
        for kind in ("events", "stream")
        for file in files_below(Store(root).root / "data" / kind)
        if file.name not in (*named(there), "manifest.json")
    ]
    assert unnamed == [], "nothing lies there that no manifest names"


def files_below(path: Path) -> list[Remote]:
    assert isinstance(path, Remote)
    return list(path.changes())


def named(made: dict[str, Any]) -> set[str]:
    return {
        name for artifact in made.values() for key in ("files", "csv_files") for name in artifact.manifest.get(key, ())
    } | {made["ingest"].manifest["quarantine_file"]}


BUILDER = """
import sys, time
from streamgauge.catalog.artifacts import Store
with Store(sys.argv[1]).building("stream", sys.argv[2]) as build:
    (build.path / "part-00000.parquet").write_bytes(b"half a stream")
    print("written", flush=True)
    time.sleep(600)
"""


def test_a_builder_killed_before_it_publishes_leaves_nothing_that_looks_finished(root: str) -> None:
    store, key = Store(root), "killed"
    process = subprocess.Popen([sys.executable, "-c", BUILDER, root, key], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    there = store.path("stream", key)
    [left] = files_below(there)
    assert store.find("stream", key) is None
    with pytest.raises(UserError, match="no finished stream there; run the stage generate first"):
        store.need("stream", key, "generate")

    with store.building("stream", key) as built:
        (built.path / "part-00000.parquet").write_bytes(b"a stream")
        built.manifest["files"] = ["part-00000.parquet"]
    [file] = store.need("stream", key, "generate").files()
    assert file.read_bytes() == b"a stream"
    assert left in files_below(there), "for all that this builder knows, the other one lives"


def test_what_a_builder_left_goes_when_it_must_be_dead(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = place(f"{root}/data/stream/old/12345678/part-00000.parquet")
    left.write_bytes(b"half a stream")
    with Store(root).building("stream", "old") as built:
        assert left.exists()
        monkeypatch.setattr(artifacts, "_GIVEN_UP_S", -60.0)
        with Store(root).building("stream", "old"):
            assert not left.exists()
        assert built.path.parent == left.parent.parent


def test_of_two_builders_at_once_the_first_is_believed_and_the_other_leaves_nothing(root: str) -> None:
    store = Store(root)
    with store.building("stream", "two") as slow:
        (slow.path / "part").write_bytes(b"slow")
        with Store(root).building("stream", "two") as fast:
            (fast.path / "part").write_bytes(b"fast")
            fast.manifest["files"] = ["part"]
    [file] = store.need("stream", "two", "generate").files()
    assert file.read_bytes() == b"fast"
    assert files_below(slow.path) == []


def test_a_builder_that_fails_leaves_nothing(root: str) -> None:
    store = Store(root)

    def fail() -> None:
        with store.building("stream", "failing") as built:
            (built.path / "part").write_bytes(b"half")
            raise OSError("a task's disk is full")

    with pytest.raises(UserError, match="cannot be written: a task's disk is full"):
        fail()
    assert files_below(store.path("stream", "failing")) == []


@pytest.mark.parametrize("arrived", [True, False])
def test_a_manifest_whose_answer_is_lost_takes_nothing_with_it(
    root: str, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    store, key = Store(root), f"unclear-{arrived}"
    write = write_record

    def cut(path: Path, value: Any) -> None:
        last = path == store.path("stream", key) / "manifest.json"
        if arrived or not last:
            write(path, value)
        if last:
            raise OSError("time-out")

    def build() -> None:
        with store.building("stream", key) as built:
            (built.path / "part").write_bytes(b"whole")
            built.manifest["files"] = ["part"]

    monkeypatch.setattr(artifacts, "write_record", cut)
    with pytest.raises(UserError, match="time-out"):
        build()
    if arrived:
        [file] = store.need("stream", key, "generate").files()
        assert file.read_bytes() == b"whole"
    else:
        assert files_below(store.path("stream", key)) == []


def test_a_log_on_a_store_keeps_every_line_of_every_writer_in_order(root: str) -> None:
    log = place(f"{root}/runs/a/stages.jsonl")
    assert read_jsonl(log) == []
    records = [{"number": number, "text": "ü\n"} for number in range(5)]
    for record in records:
        append_json(log, record)
    assert read_jsonl(log) == records
    assert log_bytes(log) == b"".join(json.dumps(sealed(one), ensure_ascii=False).encode() + b"\n" for one in records)
    for _ in range(2):
        delete_log(log)
        assert (read_jsonl(log), log_bytes(log)) == ([], b"")


@pytest.mark.parametrize(
    ("artifacts", "endpoint", "said"),
    [
        ("s3://nobody-has-this/x", None, "s3://nobody-has-this: no such bucket; create it, or choose another"),
        ("s3://bench/x", "http://127.0.0.1:1", "s3://bench/x/runs/r: the store does not answer"),
        ("nosuch://bench/x", None, "nosuch://bench: cannot be reached"),
    ],
)
@pytest.mark.usefixtures("root")
def test_a_store_that_is_not_there_is_told_in_one_line_within_seconds(
    tmp_path: Path, artifacts: str, endpoint: str | None, said: str
) -> None:
    benchmark(tmp_path)
    command = [sys.executable, str(ROOT / "jobs" / "ingest.py"), "--config", str(tmp_path / "tiny.yaml")]
    command += ["--artifacts", artifacts, "--run-id", "r"]
    environment = os.environ | ({"AWS_ENDPOINT_URL": endpoint} if endpoint else {})
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"streamgauge ingest: {said}")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


@pytest.mark.parametrize("packed", [False, True])
def test_a_source_on_a_store_makes_the_same_events(spark: Any, root: str, tmp_path: Path, packed: bool) -> None:
    """The same key: what a source is, its bytes say, not its place."""
    tiny = benchmark(tmp_path)
    data = (tmp_path / "events.csv").read_bytes()
    there = place(f"{root}/sources/events.csv{'.gz' if packed else ''}")
    there.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    remote = tiny.model_copy(update={"source": tiny.source.model_copy(update={"files": (str(there),)})})
    here = ingest.run(OnSpark(spark), tiny, Store(tmp_path / "here"), split_bytes=8000)
    made = ingest.run(OnSpark(spark), remote, Store(tmp_path / "there"), split_bytes=8000)
    assert [pq.read_table(f) for f in made.files()] == [pq.read_table(f) for f in here.files()]
    assert (made.key == here.key) is not packed


def test_a_source_that_is_not_on_the_store_is_told(root: str, tmp_path: Path) -> None:
    tiny = benchmark(tmp_path)
    gone = tiny.model_copy(update={"source": tiny.source.model_copy(update={"files": (f"{root}/gone.csv",)})})
    with pytest.raises(UserError, match=rf"{root}/gone\.csv: no such source file"):
        events_key(Store(tmp_path), gone)


@pytest.mark.usefixtures("root")
def test_check_tells_of_a_wrong_bucket(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="s3://nobody-has-this: no such bucket"):
        plan_of(benchmark(tmp_path), Store("s3://nobody-has-this/x"))


def test_what_needs_a_disk_says_so(root: str) -> None:
    with pytest.raises(UserError, match=f"{root}/runs: this needs a directory of this machine"):
        open(place(f"{root}/runs"))  # noqa: SIM115
