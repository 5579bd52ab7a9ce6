"""Tests runs list, show and compare, open, and the names of metrics."""

from __future__ import annotations

import webbrowser
from dataclasses import replace
from pathlib import Path

import pytest

from streamgauge.app.cli import runs
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import write_json
from streamgauge.base.places import Remote
from streamgauge.catalog import results
from streamgauge.catalog.run_log import RunLog
from streamgauge.records.result import Result
from tests.command import Answer, Call, run


def figure(name: str, value: float, *, valid: bool = True, metric: str = "sustainable_rate_events_per_s") -> Result:
    return Result(
        "b", "e", "w", "s", "streaming", metric, "events/s", value, name, "c", low=value * 0.9, high=value * 1.1,
        valid=valid, reason="" if valid else "output wrong", machine={}, software={},
    )  # fmt: skip


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    """Makes a complete run, a later one that failed, and a folder that is not a run."""
    for name, value in (("one", 1000.0), ("two", 900.0)):
        path = tmp_path / "a" / "runs" / name
        path.mkdir(parents=True)
        with RunLog(path).stage("ingest", {}):
            pass
        results.append(path, figure(name, value))
    (tmp_path / "a" / "runs" / "one" / "index.html").write_text("page")
    results.append(tmp_path / "a" / "runs" / "two", figure("two", 5, valid=False, metric="p99_ms"))
    with pytest.raises(UserError), RunLog(tmp_path / "a" / "runs" / "two").stage("search", {"experiment": "e"}):
        raise UserError("cell e.w.s: no system")
    (tmp_path / "a" / "runs" / "empty").mkdir()
    return tmp_path / "a"


def call(artifacts: Path, *arguments: str) -> Answer:
    return run(Call([*arguments, "--artifacts", str(artifacts)]))


def test_list(artifacts: Path) -> None:
    found = call(artifacts, "runs", "list", "--json").json["runs"]
    assert [{k: v for k, v in one.items() if k != "started_at"} for one in found] == [
        {
            "run": "one",
            "stages": {"done": 1},
            "figures": 1,
            "page": str(artifacts / "runs" / "one" / "index.html"),
            "problem": None,
        },
        {"run": "two", "stages": {"done": 1, "failed": 1}, "figures": 1, "page": None, "problem": None},
    ]
    told = call(artifacts, "runs", "list", "--limit", "1").out.splitlines()
    assert told[0].endswith("two  1 done, 1 failed; 1 figure")
    assert told[1:] == [f"1 run in {artifacts / 'runs'}"]


def test_show(artifacts: Path) -> None:
    told = call(artifacts, "runs", "show", "two").out
    assert "search e: cell e.w.s: no system" in told
    assert "e w s streaming sustainable_rate_events_per_s  900 events/s (810 to 990)" in told
    assert "void: output wrong" in told
    record = call(artifacts, "runs", "show", "two", "--json").json["records"][1]
    assert (record["stage"], record["state"], record["cause"]) == ("search", "failed", "mistake")
    assert call(artifacts, "runs", "show", "two", "--json").json["lost_at_own_speed"] == {}
    loss = {"events": 3, "of": 60, "rule": "event", "cadence": "a watermark after each event"}
    (cell := artifacts / "runs" / "two" / "cells" / "e.w.s").mkdir(parents=True)
    write_json(cell / "search.json", {"version": 1, "outcome": "found", "lost_at_own_speed": loss})
    assert call(artifacts, "runs", "show", "two", "--json").json["lost_at_own_speed"] == {
        "e.w.s": loss | {"partly": 0, "windows": None, "between": None}
    }
    assert (
        "e.w.s: at the stream's own speed the query loses 3 of 60 events (5.0 %), with a watermark after each event"
    ) in call(artifacts, "runs", "show", "two").out
    compared = {"experiment": "late", "against": "ordered", "workload": "w", "system": "s", "ratio": 0.9}
    compared |= {"interval": [0.88, 0.92], "blocks": 6, "processes": 1}
    for name, more in (("late", {"compared": [compared]}), ("ordered", {})):
        (cell := artifacts / "runs" / "two" / "cells" / f"{name}.w.s").mkdir()
        claim = {"kind": "estimated", "sentence": "", "rate_events_per_s": 900.0}
        write_json(cell / "search.json", {"version": 1, "outcome": "found", "claim": claim, **more})
    [shown] = call(artifacts, "runs", "show", "two", "--json").json["comparisons"]
    assert shown == compared | {"metric": "sustainable_rate_events_per_s", "reason": ""}
    assert "late.w.s: against ordered it costs 10.0% (8.0% to 12.0%)" in call(artifacts, "runs", "show", "two").out
    call(artifacts, "runs", "show", "three").refused("run: found 'three', allowed: an existing run (empty, one, two)")


def test_compare(artifacts: Path) -> None:
    found = call(artifacts, "runs", "compare", "one", "two", "--json").json
    [row] = found["figures"]
    assert (row["figure"], row["before"]["value"], row["after"]["value"]) == (
        "e w s streaming sustainable_rate_events_per_s", 1000, 900,
    )  # fmt: skip
    assert row["before"]["samples"] == 1
    assert "ratio" not in row, "two runs were not measured in turns"
    told = call(artifacts, "runs", "compare", "one", "two").out
    assert told == (
        "e w s streaming sustainable_rate_events_per_s  1,000 events/s (900 to 1,100) of one process → "
        "900 events/s (810 to 990) of one process\n"
        "An interval of one process leaves out that fresh processes differ by several percent.\n"
    )
    call(artifacts, "runs", "compare", "one", "empty").refused("one and empty: found no figure that counts in both")


def test_a_sound_measurement_without_a_value_says_why_and_counts_as_no_figure(artifacts: Path) -> None:
    for name, value in (("one", None), ("two", 3.0)):
        grown = replace(figure(name, 3, metric="soak_heap_per_hour"), value=value)
        none = replace(grown, low=None, high=None, reason="fewer than 16 samples")
        results.append(artifacts / "runs" / name, grown if value else none)
    assert "soak_heap_per_hour  —  fewer than 16 samples\n" in call(artifacts, "runs", "show", "one").out
    assert "soak_heap_per_hour" not in call(artifacts, "runs", "compare", "one", "two").out
    assert [one["figures"] for one in call(artifacts, "runs", "list", "--json").json["runs"]] == [1, 2]
    call(artifacts, "runs", "compare", "one", "empty").refused(
        "soak_heap_per_hour has no value in one: fewer than 16 samples"
    )


@pytest.mark.parametrize(
    ("metric", "is_marked"),
    [
        ("scaling_rate_at_2", True), ("scaling_contention", True), ("soak_heap_per_hour", True),
        ("scaling_rate_at_parallelism_2", False), ("scaling_contention_of_parallelism", False),
        ("scaling_cores_for_5000_per_s", False), ("catchup_seconds", False),
    ],
)  # fmt: skip
def test_samples_of_one_process_are_told_as_such(artifacts: Path, metric: str, is_marked: bool) -> None:
    for name in ("one", "two"):
        results.append(artifacts / "runs" / name, replace(figure(name, 3, metric=metric), samples=6))
    [told] = [line for line in call(artifacts, "runs", "compare", "one", "two").out.splitlines() if metric in line]
    assert told.count(" of one process") == 2 * is_marked


def test_compare_says_which_figures_are_void_and_why(artifacts: Path) -> None:
    path = artifacts / "runs" / "void"
    path.mkdir()
    results.append(path, figure("void", 5, valid=False))
    call(artifacts, "runs", "compare", "one", "void").refused(
        "one and void: found no figure that counts in both; "
        "e w s streaming sustainable_rate_events_per_s is void in void: output wrong"
    )


def test_open(artifacts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    page = artifacts / "runs" / "one" / "index.html"
    assert call(artifacts, "open").out == f"{page}\n"
    assert opened == [page.as_uri()]
    call(artifacts, "open", "two").refused("two: this run has no page")


def test_a_page_on_a_store_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Remote("s3://bench/runs/one/index.html")
    monkeypatch.setattr(runs, "known_run", lambda *_: page.parent)
    monkeypatch.setattr(Remote, "exists", lambda *_: True)
    with pytest.raises(UserError, match="lies on a store, which a browser cannot open"):
        runs.open_("one")


def test_without_any_run(tmp_path: Path) -> None:
    assert call(tmp_path, "runs", "list").out == f"0 runs in {tmp_path / 'runs'}\n"
    call(tmp_path, "open").refused("runs: found no run with a page")


def test_version_is_an_option_too() -> None:
    assert run(Call(["--version"])).out == run(Call(["version"])).out


def test_metrics_are_listed(artifacts: Path) -> None:
    run(Call(["results", "add", "--artifacts", str(artifacts)]))
    found = call(artifacts, "results", "metrics", "--json").json["metrics"]
    assert found == [
        {"metric": "p99_ms", "unit": "events/s", "series": 1, "valid": 0},
        {"metric": "sustainable_rate_events_per_s", "unit": "events/s", "series": 1, "valid": 2},
    ]
