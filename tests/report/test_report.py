"""The page is built from hand-written records; what it says is read back with an HTML parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.records.validation import Likeness
from streamgauge.results.report import build, layout
from streamgauge.results.report.blocks import Note, Outcome, Section, Table, Text
from streamgauge.results.report.charts import edges, steps
from streamgauge.results.report.experiments import _likeness
from streamgauge.results.report.formatting import MISSING
from streamgauge.results.report.run_records import Records
from streamgauge.streams.keys import profile_key
from tests.example_run import (
    RUN,
    Recorder,
    benchmark,
    profile,
    record_example,
    stream,
)
from tests.report.page_reader import Page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    place = tmp_path_factory.mktemp("page")
    made, store = benchmark(place / "source.csv"), Store(place / "artifacts")
    record_example(store, made)
    return Page(build(made, store, RUN))


def test_headline_counts_what_passed_and_names_each_failure_with_its_reason(page: Page) -> None:
    assert page.text["verdict"] == [
        "1 of 3 experiments validated", "2 remarks",
        "validate late20", "1 of 2 expectations failed: sorted (3 descents)",
        "generate late99", "target_percent: found 99, this seed's bound is 94.85 <b>%</b>; use on_infeasible: closest",
    ]  # fmt: skip


def test_summary_has_one_row_per_experiment(page: Page) -> None:
    assert page.row("ordered") == ["ordered", "0 %", "0 %", "26 483", "0", "00c0ffee00c0", "passed"]
    assert page.row("late20") == ["late20", "20 %", "20.0015 %", "26 483", "5 297", "20c0ffee20c0", "failed"]
    assert page.row("late99") == ["late99", "99 %", "—", "—", "—", "—", "no stream"]


def test_every_name_and_reason_is_text_never_markup(page: Page) -> None:
    assert "b" not in page.tags
    assert page.tags.count("script") == 2 + len(page.figures)  # plotly, ours, and the data of each chart
    assert "Departures <New York> & what became of them" in page.text[".lead"]
    assert ["sorted", "failed", "descents <script> 3"] in page.rows


def test_page_needs_nothing_from_elsewhere(page: Page) -> None:
    assert not {"img", "iframe", "object"} & set(page.tags)
    assert [link for link in page.links if not link.startswith("#")] == [
        *(f"validation-{name}/docs/index.html" for name in ("ordered", "late20")), "benchmark.json", "stages.jsonl",
    ]  # fmt: skip


def test_charts_carry_the_numbers_of_the_records(page: Page) -> None:
    histogram, watermark, frequency, drawn, timings = page.figures
    assert sum(histogram["data"][0]["y"]) == sum(c for _, _, c in profile()["delay_histogram"])
    assert watermark["data"][0]["y"][0] == pytest.approx(100 * 5_103 / 26_483)
    assert frequency["data"][0]["x"][0] == "2013-01-01 05:00:00"
    assert [trace["name"] for trace in drawn["data"]] == ["drawn", "observed"]
    assert [sum(trace["y"]) for trace in drawn["data"]] == pytest.approx([100, 100])
    assert sum(len(bar["y"]) for bar in timings["data"]) == 7


def test_stages_link_what_spark_kept_of_them(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    r = Recorder(store, made)
    history = "http://history.example.org:18080/history/app-2/"
    r.stage("ingest", outcome={"spark": {"id": "local-1", "events": "file:/spark-events"}})
    r.stage("analyze", outcome={"spark": {"id": "app-2", "events": "file:/spark-events", "history": history}})
    r.stage("generate", outcome={"spark": {"id": "app-3"}}, experiment="late20")
    measured = {"id": "app-9", "events": "file:/spark-events", "history": history.replace("app-2", "app-9")}
    checker = {"id": "local-9", "events": "file:/spark-events"}
    r.stage("search", outcome={"spark": checker, "system": measured}, experiment="late20")
    page = Page(build(made, store, RUN))
    assert [link for link in page.links if "spark" in link or "history" in link] == [history, measured["history"]]
    assert [row[-1] for row in page.rows if row[0] in ("ingest", "analyze", "generate late20")] == [
        "local-1 in file:/spark-events",
        "app-2",
        "—",
    ]


@pytest.mark.parametrize(
    ("href", "allowed"),
    [
        ("http://h:18080/history/app-1/", True), ("HTTPS://h/x", True), ("#cell-a.b.c", True), ("sweep.html", True),
        ("runs/a:b/index.html", True), ("javascript:alert(1)", False), ("JaVaScRiPt:alert(1)//http://h", False),
        (" javascript:alert(1)", False), ("java\tscript:alert(1)", False), ("\x01javascript:alert(1)", False),
        ("data:text/html,x", False), ("file:/etc/passwd", False), ("//evil.example.org/x", False),
        ("\\\\evil.example.org\\x", False), ("/\\evil.example.org", False), ("vbscript:x", False),
        ("", False), (None, False), ("http://h/a b", False), ("ftp://h/x", False), ("mailto:a@b", False),
    ],
)  # fmt: skip
def test_a_link_leads_to_the_pages_or_to_http(tmp_path: Path, href: str | None, allowed: bool) -> None:
    section = Section("s", "S", "", [Note("told", href=href), Table(["a"], [[Text("told", href=href)]])])
    (tmp_path / "page.html").write_text(layout.fill("t", "", [], Outcome("good", "g", []), [section]))
    assert [link for link in Page(tmp_path / "page.html").links if link != "#s"] == [href] * 2 * allowed


def test_watermark_sentence_is_right_by_hand(store: Store, tmp_path: Path) -> None:
    """1000 events: 40 late at 0, 9 later than 5 s, 1 later than 30 s, none later than 60 s."""
    made = benchmark(tmp_path / "source.csv")
    r = Recorder(store, made)
    curve = [[0, 40], [5 * 10**9, 9], [30 * 10**9, 1], [60 * 10**9, 0]]
    enough = {"1 %": 4 * 10**9, "0.1 %": 29 * 10**9, "none": 60 * 10**9}
    facts = {**profile(), "events": 1000, "watermark_curve": curve, "enough_delay": enough}
    r.stage("analyze", outcome=r.artifact("profile", profile_key(store, made), {}, profile=facts))
    text = " ".join(Page(build(made, store, RUN)).text["source"])
    assert "A watermark that waits 4 s loses at most 1 %, 29 s at most 0.1 %, 60 s none" in text


def test_empty_run_is_a_page_of_holes(store: Store, tmp_path: Path) -> None:
    page = Page(build(benchmark(tmp_path / "source.csv"), store, RUN))
    assert page.text["verdict"] == ["None of 3 experiments validated", "1 remark", "ingest", "not run"]
    assert page.text["source"][-2:] == ["No profile of the source.", "not run: see ingest"]
    assert not page.figures


def test_killed_stage_is_said_to_be_unfinished(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    Recorder(store, made).stage("ingest", "started")
    page = Page(build(made, store, RUN))
    assert page.text["verdict"][2:] == ["ingest", "started and not ended: still running, or killed"]


def test_missing_validation_is_a_hole_and_never_a_pass(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    r = record_example(store, made)
    r.stage("validate", "started", experiment="ordered")
    page = Page(build(made, store, RUN))
    assert page.text["verdict"][0] == "None of 3 experiments validated"
    assert page.row("ordered")[-1] == "no result"


@pytest.mark.parametrize("lost", sorted(profile().keys() - {"version"}))
def test_a_profile_without_a_key_is_a_hole_and_told_of(tmp_path: Path, lost: str) -> None:
    made = benchmark(tmp_path / "source.csv")
    facts = {key: value for key, value in profile().items() if key != lost}
    r = Recorder(store := Store(tmp_path / "torn"), made)
    r.stage("analyze", outcome=r.artifact("profile", profile_key(store, made), {}, profile=facts))
    with pytest.raises(UserError, match=rf"profile.json: damaged, {lost}: field required; run its stage again"):
        build(made, store, RUN)
    assert "No profile of the source." in Page(r.run / "index.html").text["source"]


@pytest.mark.parametrize("lost", sorted(stream(20).keys() - {"csv_files"}))
def test_a_manifest_without_a_key_is_left_out_and_named(store: Store, tmp_path: Path, lost: str) -> None:
    made = benchmark(tmp_path / "source.csv")
    r = Recorder(store, made)
    manifest = {key: value for key, value in stream(20).items() if key != lost}
    r.stage("generate", experiment="late20", outcome=r.artifact("stream", "k", manifest))
    with pytest.raises(UserError, match=rf"manifest.json: damaged, {lost}: field required; delete its folder"):
        build(made, store, RUN)
    assert Page(r.run / "index.html").row("late20")[2:6] == ["—"] * 4


def test_a_reason_names_places_as_seen_from_the_page(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    run = store.run(RUN)
    error = f"1 of 2 failed; see {run}/validation-a/docs/index.html and {store.root}/data/x"
    Recorder(store, made).stage("ingest", "failed", error=error)
    page = Page(build(made, store, RUN))
    assert page.text["verdict"][3] == "1 of 2 failed; see validation-a/docs/index.html and data/x"
    assert not any(str(tmp_path) in text for texts in page.text.values() for text in texts)


def test_retry_shows_the_last_attempt(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    r = Recorder(store, made)
    r.stage("ingest", "failed", error="disk full")
    r.stage("ingest")
    records = Records(made, store, RUN)
    assert records.status("ingest").outcome == "done"


def test_unwritable_place_is_one_line(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv")
    (store.run(RUN) / "index.html").mkdir()
    with pytest.raises(UserError, match=r"index\.html: cannot be written"):
        build(made, store, RUN)
    assert [path.name for path in store.run(RUN).iterdir()] == ["index.html"]


def test_steps_draw_gaps_as_zero() -> None:
    trace = steps("x", [[1, 2, 7], [4, 8, 5]], per_second=1)
    assert (trace["x"], trace["y"]) == ([1, 2, 4, 8], [7, 0, 5, 0])


def test_a_stream_stands_beside_the_profile_that_it_shall_be_like() -> None:
    delay = {"min": 1, "p50": 2, "p90": 3, "p99": 4, "max": 5, "mean": 2.5}
    given = {"events": 50, "out_of_order": 20, "delay": delay, "bursts": delay}
    made = given | {"delay": dict.fromkeys(delay, 10**9), "bursts": dict.fromkeys(delay)}
    distances = {"delay_distance": 0.25, "curve_distance": 0.5, "part_distance": 0.125}
    alike = Likeness.model_validate({"profile": "p.json", "tick": "ps", "given": given, "made": made, **distances})
    table = _likeness(alike, "ns")
    assert table.rows[0][:3] == ["profile", "40\u202f%", "0.001 ns"]
    assert table.rows[0][8:] == ["2.5", "2", "3", "4", "5"]
    assert table.rows[1][:3] == ["stream", "40\u202f%", "1 s"]
    assert table.rows[1][8:] == [MISSING] * 5
    assert "delays differ by 0.250, watermark curves by 0.500, and 12.5 % of the" in table.caption


def test_thin_tail_of_small_delays_stretches_no_axis() -> None:
    assert edges([[1, 2, 1], [1024, 2048, 999], [2048, 4096, 1000]], per_second=1) == [1024, 2048, 2048, 4096]


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["26\u202f483", "—", 7], True),
        (["20.0015\u202f%", "3.5\u00a0ms", "-43 min"], True),
        (["1 of 2 failed"], False),
        (["2013-01-01 05:00:00"], False),
    ],
)
def test_column_of_numbers_is_told_from_text(cells: list[str | int], numeric: bool) -> None:
    assert Table(["x"], [[cell] for cell in cells]).numeric == [numeric]


def test_job_prints_the_path_and_records_it(store: Store, tmp_path: Path) -> None:
    config = tmp_path / "b.yaml"
    (tmp_path / "s.csv").write_text("t\n1\n")
    config.write_text(
        "{name: b, source: {files: s.csv, time: {column: t, unit: s}}, experiments: [{name: e, target_percent: 0}]}"
    )
    job = Path(__file__).parents[2] / "jobs" / "report.py"
    done = subprocess.run(
        [sys.executable, job, "--config", config, "--run-id", "r", "--artifacts", store.root],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    page = store.root / "runs" / "r" / "index.html"
    assert done.returncode == 0, done.stderr
    assert f"page: {page}\n" in done.stderr
    assert page.exists()
