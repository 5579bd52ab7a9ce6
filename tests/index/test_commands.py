"""results and gc as a user meets them."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path
from typing import Any

import polars
import pytest

from streamgauge.app.nights.series import Series, looks
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.base.units import parse_bytes
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.judgement import Judgement, ReleaseVerdict
from streamgauge.results.index import Index, default_url, export, garbage_collection, index_run
from streamgauge.results.report import dashboard
from streamgauge.results.report.runs_page import render
from tests.command import Answer, Call, run
from tests.index import example


def call(tmp_path: Path, *arguments: str) -> Answer:
    return run(Call(["results", *arguments, "--artifacts", str(tmp_path)]))


def test_rebuild_list_and_export(tmp_path: Path) -> None:
    example.three_runs(tmp_path)
    assert call(tmp_path, "rebuild").out == "6 results of 3 runs\n"
    listed = call(tmp_path, "list", "--where", "metric=event_latency_ms_p99", "--json").json["results"]
    assert [row["value"] for row in listed] == [100.0, 100.0, 110.25, 100.0]
    assert "void: wrong answer: é 'x'" in call(tmp_path, "list").out
    assert len(call(tmp_path, "series", "--json").json["series"]) == 3
    for name in ("out.csv", "out.parquet"):
        call(tmp_path, "export", "--out", str(tmp_path / name))
    parquet = polars.read_parquet(tmp_path / "out.parquet")
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert parquet["value"].to_list() == [100.0, 100.0, 50000.0, 110.25, None, 100.0]
    assert [row["value"] for row in rows] == ["100", "100", "50000", "110.25", "", "100"]
    assert [row["reason"] for row in rows] == parquet["reason"].to_list()


@pytest.mark.parametrize(
    ("kind", "mark", "shown"),
    [("proven", "", "54,321"), ("at least", "at least", "54,321"), ("estimated", "estimated", "54,321"),
     ("not settled", "not settled", "54,321"), ("contradicted", "", None)],
)  # fmt: skip
def test_a_figure_bears_its_claim_in_lists_exports_nights_and_curves(
    tmp_path: Path, kind: str, mark: str, shown: str | None
) -> None:
    value = 54_321.0 if shown else None
    rate = {"metric": "sustainable_rate_events_per_s", "unit": "events/s", "claim": kind, "valid": shown is not None}
    example.run(tmp_path, "n1", example.result("n1", value, **rate))
    example.run(tmp_path, "n2", example.result("n2", value, at="2026-03-02T02:00:00+00:00", **rate))
    call(tmp_path, "rebuild")
    marked = f"{mark} {shown}".lstrip() if shown else "—"
    assert f"sustainable_rate_events_per_s {marked} events/s" in call(tmp_path, "list").out
    for name in ("out.csv", "out.parquet"):
        call(tmp_path, "export", "--out", str(tmp_path / name))
    read = (polars.read_csv(tmp_path / "out.csv"), polars.read_parquet(tmp_path / "out.parquet"))
    assert [table["claim"].to_list() for table in read] == [[kind] * 2] * 2
    assert [table["value"].to_list() for table in read] == [[value] * 2] * 2
    if shown:
        compared = run(Call(["runs", "compare", "n1", "n2", "--artifacts", str(tmp_path)])).out
        assert compared.count(f"{marked} events/s") == 2
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    (head,) = index.series()
    night = Series(head, index.history(head.key), []).name
    assert night.endswith(f"events_per_s ({mark})" if mark else "events_per_s")
    dashboard.build(index, tmp_path / "page.html", looks(index))
    page = (tmp_path / "page.html").read_text().replace("\u202f", ",").replace("\u00a0", " ")
    assert page.count(f"{marked} events/s") == (1 if shown else 0)
    assert ("circle-open" in page) is (mark != "")
    assert "54,321" in page if shown else "54,321" not in page


def test_a_figure_without_a_value_says_why_and_leaves_for_no_other_tool(tmp_path: Path) -> None:
    why = "fewer than 16 samples"
    example.run(tmp_path, "n1", example.result("n1", None, metric="soak_age_per_hour", unit="s/h", reason=why))
    call(tmp_path, "rebuild")
    assert f"soak_age_per_hour — s/h  {why}\n" in call(tmp_path, "list").out
    assert [one["valid"] for one in call(tmp_path, "metrics", "--json").json["metrics"]] == [0]
    for form in ("bencher", "otava", "openmetrics"):
        call(tmp_path, "export", "--as", form, "--out", str(tmp_path / "out")).refused("--where: found no figure")
    index = Index(f"sqlite:///{tmp_path / 'results.db'}")
    dashboard.build(index, tmp_path / "page.html", looks(index))
    assert why in (tmp_path / "page.html").read_text()


def test_an_export_has_the_comparisons_of_the_runs_that_are_here(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rate = {"metric": "sustainable_rate_events_per_s", "unit": "events/s"}
    answered = example.result("n1", mode="batch", at="2026-03-01T03:00:00+00:00")
    example.run(tmp_path, "n1", example.result("n1", 900.0, mode="quick", **rate), answered)
    example.run(tmp_path, "n2", example.result("n2", 900.0, at="2026-03-02T02:00:00+00:00", **rate))
    compared = {"experiment": "late20", "against": "ordered", "workload": "sums", "system": "spark", "ratio": 0.9}
    compared |= {"interval": [0.88, 0.92], "blocks": 6, "processes": 3}
    unknown = {**compared, "metric": "p99", "ratio": None, "interval": None, "reason": "too few"}
    claim = {"kind": "proven", "sentence": "", "rate_events_per_s": 900.0}
    for name, more in (("late20", {"compared": [compared, unknown]}), ("ordered", {})):
        (cell := tmp_path / "runs" / "n1" / "cells" / f"{name}.sums.spark").mkdir(parents=True)
        write_json(cell / "search.json", {"version": 1, "outcome": "found", "claim": claim, **more})
    (damaged := tmp_path / "runs" / "n2" / "cells" / "late20.sums.spark").mkdir(parents=True)
    (damaged / "search.json").write_text("torn")
    call(tmp_path, "rebuild")
    for name in ("out.csv", "out.parquet"):
        told = call(tmp_path, "export", "--out", str(tmp_path / name), "--json").json
        assert (told["results"], told["comparisons"]) == (3, 2)
    assert f"{damaged / 'search.json'}: damaged, no JSON" in caplog.text
    assert "the comparisons of its run were left out" in caplog.text
    read = (polars.read_csv(tmp_path / "out.csv"), polars.read_parquet(tmp_path / "out.parquet"))
    names = ("run_id", "experiment", "against", "workload", "system", "metric", "value", "low", "high", "blocks",
             "processes", "unit", "valid", "reason", "at", "mode")  # fmt: skip
    for table in read:
        known, open_ = table.filter(polars.col("against").is_not_null()).select(names).rows()
        assert known[:11] == (
            "n1", "late20", "ordered", "sums", "spark", "sustainable_rate_events_per_s", 0.9, 0.88, 0.92, 6, 3,
        )  # fmt: skip
        assert (known[11], *known[14:]) == ("ratio", "2026-03-01T02:00:00+00:00", "quick")
        assert open_[5:9] == ("p99", None, None, None)
        assert open_[13] == "too few"
    for where, count in (("metric=p99", 1), ("experiment=ordered", 0), ("run_id=n2", 0), ("unit=ratio", 2)):
        told = call(tmp_path, "export", "--out", str(tmp_path / "some.csv"), "--where", where, "--json").json
        assert told["comparisons"] == count, where


def test_an_exported_reason_is_no_formula(tmp_path: Path) -> None:
    row = {"reason": "=HYPERLINK(1)", "unit": "-", "value": -2.5, "machine": {"cpu": "@x"}}
    for name in ("out.csv", "out.parquet"):
        export.write([row], tmp_path / name)
    with open(tmp_path / "out.csv", newline="") as file:
        (cells,) = csv.DictReader(file)
    assert [cells[name] for name in row] == ["'=HYPERLINK(1)", "'-", "-2.5", '{"cpu":"@x"}']
    assert polars.read_parquet(tmp_path / "out.parquet")["reason"].to_list() == ["=HYPERLINK(1)"]


def test_a_database_of_two_hosts_is_added_to_and_emptied_of_the_other_only_on_demand(tmp_path: Path) -> None:
    database = ["--database", f"sqlite:///{tmp_path / 'both.db'}"]
    for host, at in (("one", "2026-03-01T02:00:00+00:00"), ("two", "2026-03-01T02:00:07+00:00")):
        example.run(tmp_path / host, "night", example.result("night", 5.0, at=at))
        assert call(tmp_path / host, "add", *database).out == "1 new result of 1 run\n"
        assert call(tmp_path / host, "add", *database).out == "0 new results of 1 run\n"
    call(tmp_path / "one", "rebuild", *database).refused("found 1 points (runs night) that are in no record here")
    assert len(call(tmp_path / "one", "list", *database, "--json").json["results"]) == 2
    assert call(tmp_path / "one", "rebuild", "--others", *database).out == "1 result of 1 run\n"
    assert len(call(tmp_path / "one", "list", *database, "--json").json["results"]) == 1
    judged = Judgement("check", "", "2026-03-02T02:00:00+00:00", "release_check", 0.0, ReleaseVerdict(verdict="no-go"))
    results.judge(Store(tmp_path / "two").run("check"), judged)  # it has no figure
    call(tmp_path / "two", "add", *database)
    call(tmp_path / "one", "rebuild", *database).refused("found 2 points and judgements (runs check, night)")


def test_series_of_one_run(tmp_path: Path) -> None:
    example.run(tmp_path, "one", example.result("one", 5.0))
    example.run(tmp_path, "two", example.result("two", 5.0), example.result("two", 7.0, metric="output_rows"))
    call(tmp_path, "rebuild")
    for run_id, count in (("one", 1), ("two", 2), ("none", 0)):
        found = call(tmp_path, "series", "--where", f"run_id={run_id}", "--json").json["series"]
        assert len(found) == count, run_id


def test_artifacts_on_a_store_have_their_index_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = ["--artifacts", "s3://bucket/place"]
    assert run(Call(["results", "list", *store])).out == "0 results\n"
    example.run(tmp_path, "night", example.result("night", 5.0))
    call(tmp_path, "add", "--database", default_url(Path("s3://bucket/place")))
    assert run(Call(["results", "list", *store])).out.endswith("1 result\n")


def test_a_file_among_the_runs_is_nobody_s_run(tmp_path: Path) -> None:
    example.run(tmp_path, "night", example.result("night", 5.0))
    (tmp_path / "runs" / "notes.txt").write_text("mine")
    assert run(Call(["gc", "--artifacts", str(tmp_path)])).code == 0
    assert [
        one["run"] for one in run(Call(["runs", "list", "--artifacts", str(tmp_path), "--json"])).json["runs"]
    ] == []
    assert "none has begun here yet" in render(Store(tmp_path))
    assert (tmp_path / "runs" / "notes.txt").exists()


def test_a_history_goes_into_changes(tmp_path: Path) -> None:
    for night in range(20):
        value = None if night == 5 else (100.0 if night < 12 else 120.0) + night % 3
        at = f"2026-05-{night + 1:02}T01:00:00+00:00"
        example.run(tmp_path, f"n{night:02}", example.result(f"n{night:02}", value, at=at, valid=value is not None))
    call(tmp_path, "rebuild")
    (series,) = call(tmp_path, "series", "--json").json["series"]
    assert call(tmp_path, "history", series["key"], str(tmp_path / "h.csv")).code == 0
    call(tmp_path, "history", series["key"], str(tmp_path / "no" / "h.csv")).refused(
        "h.csv: cannot be written: No such"
    )
    later = call(tmp_path, "list", "--since", "2026-05-19T03:00+02:00", "--json").json["results"]
    assert [row["at"][:10] for row in later] == ["2026-05-19", "2026-05-20"]
    found = run(Call(["changes", str(tmp_path / "h.csv"), "--json"])).json
    assert [c["time"] for c in found["changes"]] == ["2026-05-13T01:00:00+00:00"]
    assert found["gaps"] == [{"after": "2026-05-05T01:00:00+00:00", "before": "2026-05-07T01:00:00+00:00", "days": 2.0}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "--where", "colour=blue"], "--where: found 'colour', allowed: benchmark"),
        (["list", "--where", "colour"], "--where: found 'colour', allowed: NAME=VALUE"),
        (["export", "--out", "x.txt"], "--out: found 'x.txt', allowed: a name that ends in .csv or .parquet"),
        (["list", "--since", "yesterday"], "--since: found 'yesterday', allowed: a moment such as 2026-03-21"),
        (["rebuild"], "runs: found no run; rebuilding would empty the index; name the folder with --artifacts"),
        (["add"], "runs: found no run; name the folder with --artifacts"),
        (["history", "nokey", "x.csv"], "found no series 'nokey'"),
        (["list", "--database", "postgresql://127.0.0.1:1/none"], "the database does not answer"),
        (["list", "--database", "oracle://x"], "found 'oracle', allowed: sqlite or postgresql"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    call(tmp_path, *arguments).refused(said)


HOUR = 3600


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three runs, each with a stream of 1 MiB; the oldest one's source is gone."""
    store = Store(tmp_path)
    for age, name in enumerate(["new", "middle", "old"]):
        for kind in ("events", "stream"):
            with store.building(kind, f"{kind}-{name}") as build:
                (build.path / "part.parquet").write_bytes(os.urandom(2**20))
                build.manifest = {"files": ["part.parquet"]}
                if kind == "events" and name == "old":
                    build.manifest["sources"] = [{"size": 1, "sha256": "gone"}]
        path = example.run(tmp_path, name, example.result(name))
        for kind in ("events", "stream"):
            with RunLog(path).stage(kind, {}) as outcome:
                outcome["key"] = f"{kind}-{name}"
        (path / "cells" / "c" / "work" / "checkpoint").mkdir(parents=True)
        (path / "cells" / "c" / "work" / "checkpoint" / "state").write_bytes(os.urandom(2**20))
        write_json(path / "cells" / "c" / "search.json", {})
        past = time.time() - (age + 2) * HOUR * 24
        for file in [*path.rglob("*"), *store.root.glob(f"data/*/*-{name}/*")]:
            os.utime(file, (past, past))
    return store


def gc(store: Store, *arguments: str) -> dict[str, Any]:
    return run(Call(["gc", "--artifacts", str(store.root), *arguments, "--json"])).json


def test_gc_leaves_everything_within_the_budget_but_leftovers(store: Store) -> None:
    (store.root / "data" / "stream" / "x.tmp-1").mkdir()
    write_json(store.root / "data" / "stream" / "x.tmp-1" / "manifest.json", {})  # killed before it was published
    assert len(gc(store)["removed"]) == 1
    assert not (store.root / "data" / "stream" / "x.tmp-1").exists()
    assert store.find("stream", "stream-old")


def test_gc_ends_a_collection_that_was_killed_and_keeps_its_manifest(store: Store) -> None:
    path = store.path("stream", "stream-old")
    (path / "manifest.json").rename(path / "manifest.collected.json")
    assert [item["why"] for item in gc(store)["removed"]] == ["leftover of a killed collection"]
    assert [file.name for file in path.iterdir()] == ["manifest.collected.json"]
    assert gc(store)["removed"] == []


def test_gc_takes_the_oldest_first_and_never_a_record(store: Store) -> None:
    records = {p: p.read_bytes() for p in store.root.rglob("*.json*") if p.name != "manifest.json"}
    removed = [Path(item["path"]) for item in gc(store, "--budget", "4500KiB", "--keep-runs", "1")["removed"]]
    assert [path.name for path in removed] == ["work", "work", "work", "stream-old", "stream-middle"]
    assert [path.parents[2].name for path in removed[:3]] == ["old", "middle", "new"]
    assert {p: p.read_bytes() for p in records} == records
    assert store.find("stream", "stream-old") is None
    recalled = store.recall("stream", "stream-old")
    assert recalled is not None
    assert recalled.manifest["files"] == ["part.parquet"]
    gc(store, "--budget", "0", "--keep-runs", "1")
    assert [store.find("events", f"events-{name}") is not None for name in ("new", "middle", "old")] == [
        True, False, True,
    ]  # fmt: skip
    with store.building("stream", "stream-old") as build:
        (build.path / "part.parquet").write_bytes(b"again")
    assert store.find("stream", "stream-old")


def test_gc_keeps_what_a_run_works_on_that_has_written_nothing_for_days(store: Store) -> None:
    with claimed(store.run("old")):
        gc(store, "--budget", "0", "--keep-runs", "0")
    assert [(store.run(name) / "cells" / "c" / "work").exists() for name in ("old", "new")] == [True, False]
    assert [store.find("stream", f"stream-{name}") is not None for name in ("old", "new")] == [True, False]
    gc(store, "--budget", "0", "--keep-runs", "0")
    assert not (store.run("old") / "cells" / "c" / "work").exists()


def test_gc_keeps_a_stream_whose_events_and_source_are_gone(store: Store) -> None:
    events = store.path("events", "gone")
    events.mkdir(parents=True)
    write_json(events / "manifest.collected.json", {"files": [], "sources": [{"size": 1, "sha256": "gone"}]})
    for name, key in (("last", "gone"), ("copy", "events-old")):  # these events are still there
        with store.building("stream", name) as build:
            (build.path / "part.parquet").write_bytes(os.urandom(2**20))
            build.manifest = {"files": ["part.parquet"], "events_key": key}
    gc(store, "--budget", "0", "--keep-runs", "0")
    assert store.find("stream", "last") is not None, "nothing could make it again"
    assert store.find("stream", "copy") is None


def test_gc_takes_spark_s_event_logs_of_days_before(store: Store) -> None:
    past = time.time() - 2 * 24 * HOUR
    for name in ("app-1", "app-2.zstd", "app-3"):
        path = store.root / "spark-events" / name
        path.parent.mkdir(exist_ok=True)
        if name == "app-1":
            path.mkdir()
        (path / "events_1" if name == "app-1" else path).write_bytes(os.urandom(2**20))
        os.utime(path, (past, past)) if name != "app-3" else None
    (store.root / "spark-events" / "renamed").symlink_to("meanwhile")  # listed, and then not there
    removed = [Path(item["path"]).name for item in gc(store, "--budget", "0", "--keep-runs", "3")["removed"]]
    assert sorted(name for name in removed if name.startswith("app")) == ["app-1", "app-2.zstd"]
    assert [path.name for path in (store.root / "spark-events").iterdir() if path.exists()] == ["app-3"]


def test_gc_touches_nothing_that_may_be_in_use(store: Store) -> None:
    path = example.run(store.root, "going-on", example.result("going-on"))
    (path / "work").mkdir()
    (path / "work" / "state").write_bytes(os.urandom(2**20))
    with store.building("stream", "at-work") as build:
        manifest = build.path / "manifest.json"
        write_json(manifest, {"files": []})  # just before it is published
        gc(store, "--budget", "0", "--keep-runs", "0")
        assert manifest.exists()
    assert (path / "work" / "state").exists()


def test_dry_run_only_tells(store: Store) -> None:
    before = sorted(store.root.rglob("*"))
    assert gc(store, "--budget", "0", "--dry-run")["removed"]
    assert sorted(p for p in store.root.rglob("*") if p.suffix != ".lock") == [p for p in before if p.suffix != ".lock"]
    run(Call(["gc", "--budget", "lots", "--artifacts", str(store.root)])).refused("--budget: found 'lots', allowed")


def test_a_budget_that_cannot_be_met_is_told_before_a_run(store: Store) -> None:
    garbage_collection.require_budget(store, 12 * 2**20, keep_runs=1)
    with pytest.raises(UserError, match=r"artifacts take \d+ MiB after collection, budget 0 MiB; raise"):
        garbage_collection.require_budget(store, 2**10, keep_runs=3)


@pytest.mark.parametrize(("text", "size"), [("20GiB", 20 * 2**30), ("1.5 MB", 1_500_000), (4096, 4096), ("7", 7)])
def test_sizes(text: object, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "-1", "5 parsecs", "GiB", True, None, "1e9"])
def test_what_is_no_size(text: object) -> None:
    with pytest.raises(ValueError, match="allowed: a size such as"):
        parse_bytes(text)


def test_a_run_ends_well_whether_or_not_the_database_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example.three_runs(tmp_path)
    monkeypatch.setenv("STREAMGAUGE_DATABASE", "postgresql://127.0.0.1:1/none")
    said = index_run(tmp_path, "night1")
    assert said.startswith("results not indexed: postgresql")
    assert said.endswith("later: `streamgauge results add`")
    monkeypatch.delenv("STREAMGAUGE_DATABASE")
    assert index_run(tmp_path, "night1") == "3 results added"
    assert index_run(tmp_path, "night1") == "0 results added"
