"""The page's words on cells, from hand-written records: rates, latency, doubts, trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.measurements.latency.record import LatencyRun
from streamgauge.catalog.artifacts import Store
from streamgauge.results.report import build
from streamgauge.results.report.blocks import Outcome
from streamgauge.results.report.overview import outcome
from streamgauge.results.report.run_records import Records
from tests.example_run import (
    CELLS,
    RUN,
    Recorder,
    benchmark,
    latency,
    record_cells,
    record_example,
    system,
    trial,
)
from tests.example_search import windows
from tests.report.page_reader import Page


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Page:
    place = tmp_path_factory.mktemp("measured")
    made, store = benchmark(place / "source.csv", **CELLS), Store(place / "artifacts")
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
    assert rows[1][5].replace("\u2060", "") == "19 409 – 20 609 of one process"
    assert rows[1][6] == "allowed age"
    assert rows[2][7:] == ["1 440 ms at 90 %", "right"]  # at 100 % it did not settle
    assert rows[3][7:] == ["1 440 ms at 90 %", "wrong: latency (100 %)"]
    assert rows[4][3:] == ["—"] * 6


def test_a_latency_run_that_did_not_settle_is_a_doubt_with_its_reason(measured: Page) -> None:
    said = measured.text["verdict"]
    which = said.index("latency late20.sum.rocksdb at 100 %")
    assert said[which + 1] == "not settled: age grows by +0.050 s/s: it still settles"


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
        ({"outcome": "unproven", "reason": "no proof trial was clear"}, "open", False,
         ["The rate is only estimated: no proof trial was clear."]),
        ({"outcome": "unproven", "reason": DRIFT, "doubts": DOUBTS}, "open", False,
         [f"The rate is only estimated: {DRIFT}.", SINGLE]),
        ({"outcome": "contradicted", "reason": "39,000 events/s did not recover"}, "bad", False,
         ["The measurements contradict each other, so no rate counts: 39,000 events/s did not recover."]),
        ({"outcome": "inconclusive", "reason": "the system was lost"}, "bad", False,
         ["No rate was found: the system was lost."]),
        ({"correct": None}, "good", True, []),
        ({"correct": False}, "bad", False, ["the output of a proof trial was wrong: the rate is void"]),
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


@pytest.mark.parametrize(
    ("of_advice", "state", "problem"),
    [
        ("done", "good", []),
        ("failed", "bad", [("bad", "advice sum", "too few events")]),
        (None, "open", [("open", "advice sum", "not run")]),
    ],
)
def test_an_advice_that_was_asked_for_decides_the_state_too(
    store: Store, tmp_path: Path, of_advice: str | None, state: str, problem: list[tuple[str, str, str]]
) -> None:
    asked = {**CELLS, "systems": [{"name": "rocksdb"}], "advice": {"lost_percent": 1}}
    whole = benchmark(tmp_path / "source.csv", **asked)
    recorder = record_example(store, whole)
    made = recorder.benchmark = whole.model_copy(update={"experiments": whole.experiments[:1]})
    record_cells(recorder)
    if of_advice is not None:
        recorder.stage("advice", of_advice, error=None if of_advice == "done" else "too few events", workload="sum")
    told = outcome(Records(made, store, RUN))
    assert (told.state, [one for one in told.problems if one[1].startswith("advice")]) == (state, problem)


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
    kept, p99 = (f for f in measured.figures if f["layout"]["xaxis"]["title"]["text"].startswith("out-of-order events"))
    assert [(t["name"], t["y"]) for t in kept["data"]] == [("sum, rocksdb", [1, 0.93])]
    assert kept["data"][0]["x"] == pytest.approx([0, 100 * 5_297 / 26_483])
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
