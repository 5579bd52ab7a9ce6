"""The page is built from hand-written records; what it says is read back with an HTML parser."""

from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.records.latency import LatencyRun
from streamgauge.results.report import build, layout
from streamgauge.results.report.blocks import Note, Outcome, Section, Table, Text
from streamgauge.results.report.charts import edges, steps
from streamgauge.results.report.overview import outcome
from streamgauge.results.report.run_records import Records
from streamgauge.streams.keys import profile_key
from tests.example_run import (
    CELLS,
    RUN,
    Recorder,
    benchmark,
    latency,
    profile,
    record_cells,
    record_example,
    stream,
    system,
    trial,
)
from tests.example_search import windows

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Text by element, tables, figures; refuses tags that do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.figures: list[dict[str, Any]] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        if tag == "a":
            self.links.append(found["href"] or "")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append((tag, found))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if not self.open:
            return
        tag, attrs = self.open[-1]
        if attrs.get("type") == "application/json":
            self.figures.append(json.loads(data))
        elif tag not in ("script", "style") and data.strip():
            for enclosing, its in self.open:
                self.text.setdefault(its.get("id") or f".{its.get('class') or enclosing}", []).append(
                    " ".join(data.split())
                )
            if any(enclosing in ("td", "th") for enclosing, _ in self.open):
                self.rows[-1][-1] += " ".join(data.split())

    def row(self, first: str) -> list[str]:
        return next(row for row in self.rows if row and row[0] == first)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "artifacts")


@pytest.fixture
def page(store: Store, tmp_path: Path) -> Page:
    made = benchmark(tmp_path / "source.csv")
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


@pytest.fixture
def measured(store: Store, tmp_path: Path) -> Page:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    record_cells(record_example(store, made))
    return Page(build(made, store, RUN))


def test_headline_says_how_many_cells_were_measured_and_voids_a_wrong_output(measured: Page) -> None:
    said = measured.text["verdict"]
    assert said[0] == "1 of 3 experiments validated, 3 of 6 rates proven"
    assert measured.text["cell-late99.sum.hdfs"][-2:] == ["No sustainable rate.", "not run: see generate late99"]
    which = said.index("latency late20.sum.hdfs at 100 %")
    assert said[which + 1] == "the output differs from DuckDB's answer: the figure is void"


def test_cells_row_has_rate_claim_interval_limit_p99_of_the_highest_sound_fraction_and_output(measured: Page) -> None:
    rows = [row for row in measured.rows if len(row) == 9 and row[1] == "sum"]
    assert [cell.replace("\u2060", "") for cell in rows[0]] == [
        "ordered", "sum", "rocksdb", "40 000", "proven", "38 416 – 41 649 of 2 processes", "batch cap",
        "2 400 ms at 100 %", "right",
    ]  # fmt: skip
    assert rows[1][5].replace("\u2060", "") == "19 409 – 20 609 of the fit alone"
    assert rows[1][6] == "allowed age"
    assert rows[2][7:] == ["1 440 ms at 90 %", "right"]  # at 100 % it did not settle
    assert rows[3][7:] == ["1 440 ms at 90 %", "wrong"]
    assert rows[4][3:] == ["—"] * 6


def test_a_latency_run_that_did_not_settle_is_a_doubt_with_its_reason(measured: Page) -> None:
    said = measured.text["verdict"]
    which = said.index("latency late20.sum.rocksdb at 100 %")
    assert said[which + 1] == "the trial did not settle: age grows by +0.050 s/s: it still settles"


def test_a_single_process_is_told_once_for_all_its_cells(measured: Page) -> None:
    said = measured.text["verdict"]
    which = said.index("search ordered.sum.hdfs, late20.sum.hdfs")
    assert said[which + 1].startswith("one process: how much processes differ is unknown")


def with_search(store: Store, place: Path, **change: object) -> tuple[Outcome, Page]:
    """A run of one good experiment and one cell whose search.json has these values: its verdict and its page."""
    whole = benchmark(place / "source.csv", **{**CELLS, "systems": [{"name": "rocksdb"}]})
    r = record_example(store, whole)
    made = r.benchmark = whole.model_copy(update={"experiments": whole.experiments[:1]})
    record_cells(r)
    file = r.run / "cells" / made.all_cells()[0].name / "search.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    return outcome(Records(made, store, RUN)), Page(build(made, store, RUN))


DRIFT = "a batch still became 9% cheaper when the ladder ended"
SINGLE = "how much processes differ is unknown"
DOUBTS = [{"kind": "one process", "sentence": SINGLE}, {"kind": "drift", "sentence": DRIFT}]


@pytest.mark.parametrize(
    ("change", "state", "proven", "reasons"),
    [
        ({}, "good", True, []),
        ({"outcome": "all_sustained"}, "good", True, []),
        ({"doubts": DOUBTS[:1]}, "good", True, [SINGLE]),
        ({"doubts": DOUBTS}, "open", True, [DRIFT, SINGLE]),
        ({"outcome": "unproven", "reason": "no recovery trial was clear"}, "open", False,
         ["The rate is only estimated: no recovery trial was clear."]),
        ({"outcome": "contradicted", "reason": "39,000 events/s did not recover"}, "bad", False,
         ["The measurements contradict each other, so no rate counts: 39,000 events/s did not recover."]),
        ({"outcome": "inconclusive", "reason": "the system was lost"}, "bad", False,
         ["No rate was found: the system was lost."]),
        ({"correct": None}, "good", True, []),
        ({"correct": False}, "bad", False, ["the output of a recovery trial was wrong: the rate is void"]),
        ({"sustainable_rate_events_per_s": 0.0, "outcome": "inconclusive", "reason": "no window told"}, "bad", False,
         ["No rate was found: no window told."]),
    ],
)  # fmt: skip
def test_what_the_search_says_decides_the_state_of_the_page(
    store: Store, tmp_path: Path, change: dict[str, object], state: str, proven: bool, reasons: list[str]
) -> None:
    found, page = with_search(store, tmp_path, **change)
    assert (found.state, [why for _, _, why in found.problems]) == (state, reasons)
    assert page.text["verdict"][0].endswith("the rate is proven") is proven


def test_each_trial_shows_what_was_counted_and_what_it_cost(measured: Page) -> None:
    # 80 % of the first cell's 40 000: 20 batches with rows, 0.70 to 0.76 s
    rows = [row for row in measured.rows if row[0] == "80 %"]
    counted = next(row for row in rows if row[2] == "640 000")
    assert counted[2:] == ["640 000", "640 000", "2 000", "42", "40", "groups", "3 600"]
    cost = next(row for row in rows if len(row) == 15)
    batches, system, driver = cost[1:5], cost[5:9], cost[9:13]
    assert batches == ["730", "760", "1 900", "19"]
    assert system == ["19", "29.69", "900", "0.4"]
    assert driver == ["1.25", "1.953", "200", "0.25"]
    assert cost[13:] == ["-1.500 ± 0.020", "+0.250 ± 0.030"]


def test_batches_are_drawn_with_the_state_beside_them(measured: Page) -> None:
    chart = next(f for f in measured.figures if f["layout"]["yaxis"]["title"].get("text") == "duration (s)")
    assert (chart["data"][1]["x"][:2], chart["data"][1]["y"][:2]) == ([0, 1], [0.7, 0.71])
    assert len(chart["data"][1]["x"]) == 20


def test_latency_is_split_into_parts_in_total_and_over_time(measured: Page) -> None:
    whole, time = [f for f in measured.figures if "mean (ms)" in json.dumps(f["layout"])][:2]
    assert [(bar["name"], bar["x"][0]) for bar in whole["data"]] == [
        ("disorder", 2), ("queue wait", 50), ("watermark hold", 100), ("micro-batch", 90), ("commit, after it", 8),
    ]  # fmt: skip
    assert whole["data"][0]["y"] == ["50\u202f%", "80\u202f%", "90\u202f%", "100\u202f%"]
    assert [area["y"][:2] for area in time["data"]][1] == [50, 51]
    assert {area["stackgroup"] for area in time["data"]} == {"parts"}


def test_parts_that_an_engine_cannot_tell_are_left_out_and_a_link_has_its_share(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    place = store.run(RUN) / "cells" / made.all_cells()[0].name
    place.mkdir(parents=True)
    run = {"fraction": 0.5, "common": False, **trial(1, "", 9.0, 10.0)}
    run["details"]["latency_split_ns"] |= {"watermark_hold": None, "commit": None}
    run["details"]["system"] = {}
    (place / "latency-trials.jsonl").write_text(json.dumps(run))
    share = {"link_share": {"count": 70, "p50_ms": 3.5, "p90_ms": 8.0, "p99_ms": 21.0, "p999_ms": 30.0, "max_ms": 31.0}}
    (place / "latency.json").write_text(json.dumps([latency(0.5, 18.0, wrong=False) | share]))
    page = Page(build(made, store, RUN))
    assert [bar["name"] for bar in page.figures[2]["data"]] == ["disorder", "queue wait", "micro-batch"]
    # behind Kafka, what the link took stands below the latencies that it is part of
    wanted = ["event time", "processing time", "link's share"]
    kinds = [row[2:8] for row in page.rows if len(row) > 7 and row[2] in wanted]
    assert [kind for kind, *_ in kinds] == wanted
    assert kinds[-1][1:] == ["3.5", "8", "21", "30", "31"]


def test_disorder_sweep_compares_latency_at_a_fraction_sound_in_every_cell(measured: Page) -> None:
    rate, p99 = (f for f in measured.figures if f["layout"]["xaxis"]["title"]["text"].startswith("out-of-order events"))
    assert [(t["name"], t["y"]) for t in rate["data"]] == [
        ("sum, rocksdb", pytest.approx([40_000, 40_000 / 3])),
        ("sum, hdfs", pytest.approx([20_000, 10_000])),
    ]
    assert rate["data"][0]["x"] == pytest.approx([0, 100 * 5_297 / 26_483])
    assert "p99 event-time latency against disorder, at 90 % of each cell's rate" in measured.text["disorder"]
    assert p99["data"][0]["y"] == pytest.approx([1440, 1440])


@pytest.mark.parametrize(
    "lost", ["rate_events_per_s", "observation", "outcome", "reason", "figures", "number", "check", "details"]
)
def test_a_trial_without_a_key_is_left_out_and_named(tmp_path: Path, store: Store, lost: str) -> None:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    place = store.run(RUN) / "cells" / made.all_cells()[0].name
    place.mkdir(parents=True)
    whole = trial(1, "above", 9.0, 5.0)
    (place / "trials.jsonl").write_text(json.dumps({k: v for k, v in whole.items() if k != lost}) + "\n{torn")
    with pytest.raises(UserError, match=rf"trials.jsonl: damaged, {lost}: field required; run its stage again"):
        build(made, store, RUN)
    assert "fell behind" not in (store.run(RUN) / "index.html").read_text()
    (place / "trials.jsonl").write_text(json.dumps(whole) + "\n{torn")
    assert "fell behind" in build(made, store, RUN).read_text()


def test_nothing_sustained_is_said(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    r = Recorder(store, made)
    cell = made.all_cells()[0]
    place = r.run / "cells" / cell.name
    place.mkdir(parents=True)
    found = {
        "version": 1,
        "sustainable_rate_events_per_s": 0.0,
        "interval": None,
        "reason": "none sustained",
        "outcome": "inconclusive",
    }
    (place / "search.json").write_text(json.dumps(found))
    r.stage("search", **cell.model_dump())
    page = Page(build(made, store, RUN))
    assert "No rate was found: none sustained." in page.text["verdict"]


def test_measurements_of_an_earlier_plan_are_left_out(store: Store, tmp_path: Path) -> None:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    place = store.run(RUN) / "cells" / made.all_cells()[0].name
    place.mkdir(parents=True)
    window = windows(system(0))[0]
    for name, lines in {
        "windows": [{**window, "plan": "old"}, {**window, "plan": "new"}],
        "trials": [{**trial(2, "below", 5.0, 9.0), "plan": "old"}],  # the new plan has not come to its trials
    }.items():
        (place / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    cell = Records(made, store, RUN).cells[0]
    assert ([one.plan for one in cell.windows], cell.trials) == (["new"], [])
    (place / "search.json").write_text(
        '{"version": 1, "plan": "old", "outcome": "found"}'
    )  # settings were changed back: this answer stands again
    cell = Records(made, store, RUN).cells[0]
    assert [one.plan for one in (*cell.windows, *cell.trials)] == ["old", "old"]


@pytest.mark.parametrize(
    ("change", "sound"),
    [({}, True), ({"valid": False}, False), ({"correct": False}, False), ({"correct": None}, True),
     ({"outcome": "inconclusive"}, False), ({"outcome": "unsustainable"}, False),
     ({"event_latency": {"p99_ms": None}}, False), ({"event_latency": {}}, False)],
)  # fmt: skip
def test_latency_counts_only_if_measured_valid_and_not_wrong(change: dict[str, object], sound: bool) -> None:
    assert LatencyRun.of({**latency(1.0, 10.0, wrong=False), **change}, "latency.json").is_sound is sound
