"""Figures in the formats of other tools: whole files of small runs, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from streamgauge.catalog.claims import claimed
from tests.command import Answer, Call, run
from tests.index import example

RATE = {"metric": "sustainable_rate_events_per_s", "unit": "events/s"}
NAME = "flights/late20/sums/spark/streaming"
P99 = f"{NAME}/event_latency_ms_p99"


def call(tmp_path: Path, *arguments: str) -> Answer:
    return run(Call(["results", *arguments, "--artifacts", str(tmp_path)]))


def exported(tmp_path: Path, form: str, *more: str) -> tuple[str, str]:
    """Prints of the command without the folder's name, and the file that it wrote."""
    out = tmp_path / "out.txt"
    answer = call(tmp_path, "export", "--as", form, "--out", str(out), *more)
    assert answer.code == 0, answer.err
    return answer.out.replace(f"{tmp_path}/", ""), out.read_text()


def parsed(text: str) -> Iterable[Metric]:
    families: Callable[[str], Iterable[Metric]] = text_string_to_metric_families
    return families(text)


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Three nights: a whole one, one with a void rate, and one whose rate is estimated."""
    for name, p99, rate, more in (
        ("n1", 100.0, 5e4, {"low": 4.5e4, "high": 5.5e4}),
        ("n2", 110.25, None, {"valid": False, "reason": "wrong answer"}),
        ("n3", 99.5, 51_000.5, {"claim": "estimated"}),
    ):
        night: dict[str, Any] = {"at": f"2026-03-0{name[1]}T02:00:00+00:00", "software": {"commit": f"c{name}+"}}
        example.run(
            tmp_path, name, example.result(name, p99, **night), example.result(name, rate, **night, **RATE, **more)
        )
    call(tmp_path, "rebuild")
    return tmp_path


def test_bencher_gets_the_newest_figure_of_each_series(nights: Path) -> None:
    said, text = exported(nights, "bencher")
    rate = {"value": 51_000.5}
    assert json.loads(text) == {NAME: {"event_latency_ms_p99": {"value": 99.5}, RATE["metric"]: rate}}
    assert said == "2 results: out.txt; 1 in doubt (estimated), for which the format has no place\n"
    _, first = exported(nights, "bencher", "--where", "run_id=n1")
    assert json.loads(first)[NAME][RATE["metric"]] == {"value": 5e4, "lower_value": 4.5e4, "upper_value": 5.5e4}


def test_otava_gets_whole_runs_and_the_configuration_of_its_columns(nights: Path) -> None:
    said, text = exported(nights, "otava")
    assert text.splitlines() == [
        f"time,commit,run,{P99},{NAME}/{RATE['metric']}",
        "2026-03-01T02:00:00+00:00,cn1,n1,100.0,50000.0",
        "2026-03-03T02:00:00+00:00,cn3,n3,99.5,51000.5",
    ]
    assert said.startswith("4 results: out.txt, out.yaml; 1 void one left out; 1 run left out for lack of a figure; ")
    assert yaml.safe_load((nights / "out.yaml").read_text()) == {
        "tests": {"streamgauge": {
            "type": "csv", "file": "out.txt", "time_column": "time", "attributes": ["commit", "run"],
            "metrics": {P99: {"column": P99, "direction": -1},
                        f"{NAME}/{RATE['metric']}": {"column": f"{NAME}/{RATE['metric']}", "direction": 1}},
        }}
    }  # fmt: skip


def second_of(sample: Sample) -> int:
    assert sample.timestamp is not None
    return int(float(sample.timestamp))


def test_openmetrics_has_every_figure_and_its_interval_at_its_time(nights: Path) -> None:
    example.run(nights, "n4", example.result("n4", 1.5, at="2026-03-04T02:00:00+00:00", system='a"b\\c'))
    call(nights, "add")
    said, text = exported(nights, "openmetrics")
    families = {family.name: family.samples for family in parsed(text)}
    samples = {name: [(one.value, second_of(one)) for one in some] for name, some in families.items()}
    assert samples == {
        "streamgauge_event_latency_ms_p99": [
            (1.5, 1_772_589_600), (100.0, 1_772_330_400), (110.25, 1_772_416_800), (99.5, 1_772_503_200),
        ],
        "streamgauge_sustainable_rate_events_per_s": [(5e4, 1_772_330_400), (51_000.5, 1_772_503_200)],
        "streamgauge_sustainable_rate_events_per_s_low": [(4.5e4, 1_772_330_400)],
        "streamgauge_sustainable_rate_events_per_s_high": [(5.5e4, 1_772_330_400)],
    }  # fmt: skip
    labels = {"benchmark": "flights", "experiment": "late20", "workload": "sums", "mode": "streaming",
              "machine": "Example 1 2"}  # fmt: skip
    assert families["streamgauge_event_latency_ms_p99"][0].labels == {**labels, "system": 'a"b\\c'}
    proven, estimated = families["streamgauge_sustainable_rate_events_per_s"]
    assert estimated.labels == {**labels, "system": "spark", "claim": "estimated"}
    assert proven.labels == {**labels, "system": "spark"}
    assert text.endswith("\n# EOF\n")
    assert "1 void one left out\n" in said


@pytest.mark.parametrize("form", ["bencher", "otava"])
def test_figures_come_back_as_they_left(nights: Path, form: str) -> None:
    exported(nights, form, "--where", "run_id=n1")
    there = nights / "elsewhere"
    arguments = ("import", str(nights / "out.txt"), "--as", form, "--at", "2026-03-01T02:00")
    answer = call(there, *arguments)
    assert answer.out.startswith("2 new of 2 results: run imported-")
    assert call(there, *arguments).out.startswith("0 new of 2 results")
    assert call(there, "rebuild").out == "2 results of 1 run\n"
    columns = ["benchmark", "experiment", "workload", "system", "mode", "metric", "value", "at"]
    columns += ["low", "high"] if form == "bencher" else []

    def figures(artifacts: Path) -> list[list[Any]]:
        rows = call(artifacts, "list", "--where", "benchmark=flights", "--json").json["results"]
        return sorted([row[name] for name in columns] for row in rows if row["at"] == "2026-03-01T02:00:00+00:00")

    assert figures(there) == figures(nights)


def test_another_tool_s_history_goes_into_changes_and_the_dashboard(tmp_path: Path) -> None:
    values = [*range(100, 108), *range(140, 148)]
    rows = [f"2024.02.{day:02} 3:00:00 +0100,{day},{value},,v{day}" for day, value in enumerate(values, 1)]
    file = tmp_path / "their.csv"
    file.write_text("\n".join(["time,commit,p99 (ms),idle,build", *rows, ""]))
    answer = call(tmp_path, "import", str(file), "--as", "otava", "--machine", "ci")
    assert answer.out.startswith("16 new of 16 results")
    (series,) = call(tmp_path, "series", "--json").json["series"]
    assert {name: series[name] for name in ("benchmark", "experiment", "metric", "machine")} == {
        "benchmark": "their", "experiment": "", "metric": "p99 (ms)", "machine": {"host": "ci"},
    }  # fmt: skip
    (last,) = call(tmp_path, "list", "--limit", "1", "--json").json["results"]
    assert (last["at"], last["software"]) == ("2024-02-16T02:00:00+00:00", {"commit": "16", "idle": "", "build": "v16"})
    assert call(tmp_path, "series").out == f"{series['key']}  their p99 (ms)  on ci\n1 series\n"
    assert "\n# HELP streamgauge_p99__ms_ p99 (ms)\n" in exported(tmp_path, "openmetrics")[1]
    call(tmp_path, "history", series["key"], str(tmp_path / "history.csv"))
    changes = run(Call(["changes", str(tmp_path / "history.csv"), "--json"])).json["changes"]
    assert [one["time"] for one in changes] == ["2024-02-09T02:00:00+00:00"]
    page = run(Call(["dashboard", "--out", str(tmp_path / "page.html"), "--artifacts", str(tmp_path)]))
    assert page.code == 0, page.err


def test_bencher_gets_no_older_figure_in_place_of_a_void_one(nights: Path) -> None:
    void = example.result("n4", None, at="2026-03-04T02:00:00+00:00", valid=False, reason="wrong answer", **RATE)
    example.run(nights, "n4", void)
    call(nights, "rebuild")
    said, text = exported(nights, "bencher")
    assert json.loads(text) == {NAME: {"event_latency_ms_p99": {"value": 99.5}}}
    assert said == "1 result: out.txt; 1 void one left out\n"


def test_openmetrics_parts_metrics_of_one_family_and_takes_an_interval_from_its_own_figure(tmp_path: Path) -> None:
    table, report = tmp_path / "their.csv", tmp_path / "report.json"
    table.write_text("time,p99 (ms),p99 [ms]\n2026-03-01,3,40\n")
    call(tmp_path, "import", str(table), "--as", "otava")
    for value in ({"value": 5, "lower_value": 4, "upper_value": 6}, {"value": 50}):
        report.write_text(json.dumps({"a": {"m": value}}))
        call(tmp_path, "import", str(report), "--as", "bencher", "--at", "2026-03-01", "--benchmark", "b")
    text = exported(tmp_path, "openmetrics")[1]
    families = list(parsed(text))
    assert [one.name for one in families] == ["streamgauge_m", "streamgauge_p99__ms_"], "50 has no interval"
    assert [one.value for one in families[0].samples] == [50.0]
    assert {(one.labels["metric"], one.value) for one in families[1].samples} == {("p99 (ms)", 3.0), ("p99 [ms]", 40.0)}


def test_an_import_waits_for_nobody_and_says_what_to_do_about_a_damaged_line(tmp_path: Path) -> None:
    file = tmp_path / "their.csv"
    file.write_text("time,a\n2026-01-01,2\n2026-01-02,3\n")
    call(tmp_path, "import", str(file), "--as", "otava")
    (run_of,) = (tmp_path / "runs").iterdir()
    with claimed(run_of):
        call(tmp_path, "import", str(file), "--as", "otava").refused(f"run {run_of.name}: ")
    log = run_of / "results.jsonl"
    log.write_text("{\n" + log.read_text().partition("\n")[2])
    call(tmp_path, "import", str(file), "--as", "otava").refused(f"; delete the folder {run_of}, and import again")


@pytest.mark.parametrize(
    ("form", "text", "names"),
    [
        ("bencher", '{"group/parse/10": {"latency": {"value": 12.5}}}', [("mine", "group/parse/10", "latency")]),
        ("bencher", '{"BM_Sort/int/1024/real_time/threads:4": {"latency": {"value": 1}}}',
         [("mine", "BM_Sort/int/1024/real_time/threads:4", "latency")]),
        ("otava", "time,events/s,p99\n2026-03-01,2,3\n2026-03-02,2,4\n",
         [*[("mine", "", "events/s")] * 2, *[("mine", "", "p99")] * 2]),
    ],
)  # fmt: skip
def test_another_tool_s_names_come_back_as_they_left(
    tmp_path: Path, form: str, text: str, names: list[tuple[str, ...]]
) -> None:
    file = tmp_path / "file.txt"
    file.write_text(text)
    for place, benchmark in (("here", "mine"), ("there", "theirs")):
        answer = call(tmp_path / place, "import", str(file), "--as", form, "--benchmark", benchmark)
        assert answer.code == 0, answer.err
        rows = call(tmp_path / place, "list", "--json").json["results"]
        assert sorted((row["benchmark"], row["experiment"], row["metric"]) for row in rows) == names
        call(tmp_path / place, "export", "--as", form, "--out", str(file))


def test_each_value_of_a_history_counts_also_one_that_is_as_before(tmp_path: Path) -> None:
    file = tmp_path / "their.csv"
    file.write_text("time,a,b\n2026-01-01,2,7\n2026-01-02,2,7\n2026-01-03,2,8\n")
    answer = call(tmp_path, "import", str(file), "--as", "otava")
    assert answer.out.startswith("6 new of 6 results: run imported-")
    (log,) = tmp_path.glob("runs/*/results.jsonl")
    whole = log.read_text()
    log.write_text("".join(whole.splitlines(keepends=True)[:4]))  # an import that was killed
    assert call(tmp_path, "import", str(file), "--as", "otava").out.startswith("0 new of 6 results")
    assert log.read_text() == whole


def test_a_report_of_bencher_keeps_its_names(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text('{"tests::parse": {"latency": {"value": 12.5, "lower_value": 11}, "lines": {"value": 3}}}')
    call(tmp_path, "import", str(file), "--as", "bencher", "--benchmark", "parser", "--at", "2026-03-01")
    rows = call(tmp_path, "list", "--json").json["results"]
    assert [
        [row[name] for name in ("benchmark", "experiment", "metric", "unit", "value", "low", "at")] for row in rows
    ] == [
        ["parser", "tests::parse", "latency", "ns", 12.5, 11.0, "2026-03-01T00:00:00+00:00"],
        ["parser", "tests::parse", "lines", "", 3.0, None, "2026-03-01T00:00:00+00:00"],
    ]


@pytest.mark.parametrize(
    ("form", "text", "said"),
    [
        ("bencher", '{"a": {"latency": {"value": "x"}}}', "a.latency.value"),
        ("bencher", "[1]", "the file: "),
        ("bencher", json.dumps({"a" * 201: {"latency": {"value": 1}}}), "allowed: at most 200 characters, without NUL"),
        ("bencher", json.dumps({"a\0": {"latency": {"value": 1}}}), "allowed: at most 200 characters, without NUL"),
        ("bencher", '{"a": {"latency": {"value": 1, "mean": 2}}}', "a.latency.mean"),
        ("otava", "when,a\n1,2\n", "found 'when, a', allowed: a column time"),
        ("otava", "time,a\n2026-01-01,2,3\n", "row 2: found 3 fields, allowed: 2"),
        ("otava", "time,a\nsoon,2\n", "row 2: time: found 'soon', allowed: ISO-8601"),
        ("otava", "time,a\n2026-01-01,x\n", "found no column of numbers beside time"),
        ("otava", "time,branch,a\n2026-01-01,main,2\n2026-01-02,dev,2\n", "branch: found 2 branches, allowed: one"),
    ],
)
def test_a_file_that_is_none_is_one_line(tmp_path: Path, form: str, text: str, said: str) -> None:
    file = tmp_path / "file.txt"
    file.write_text(text)
    call(tmp_path, "import", str(file), "--as", form).refused(f"{file}: ", said)
    assert not (tmp_path / "results.db").exists()
    assert not (tmp_path / "runs").exists()


def test_a_table_of_no_run_is_refused(tmp_path: Path) -> None:
    for name, metric in (("one", "p50"), ("two", "p99")):
        example.run(tmp_path, name, example.result(name, metric=metric))
    call(tmp_path, "rebuild")
    out = tmp_path / "out.csv"
    said = "--where: found no run that has all 2 figures, allowed: one or more; name fewer, such as by metric=p99"
    call(tmp_path, "export", "--as", "otava", "--out", str(out)).refused(said)
    assert not out.exists()
    its = out.with_suffix(".yaml")
    call(tmp_path, "export", "--as", "otava", "--out", str(its), "--where", "run_id=one").refused(f"--out: found {its}")


def test_what_cannot_be_told_is_refused(tmp_path: Path) -> None:
    example.three_runs(tmp_path)
    call(tmp_path, "rebuild")
    out = str(tmp_path / "out.json")
    for form in ("bencher", "otava"):
        call(tmp_path, "export", "--as", form, "--out", out).refused("found figures of 2 machines, allowed: one")
    call(tmp_path, "export", "--as", "otava", "--out", out, "--where", "system=flink").refused("found no figure")
    call(tmp_path, "import", str(tmp_path / "none"), "--as", "otava").refused("none: no such file")
    Path(out).write_text("{}")
    call(tmp_path, "import", out, "--as", "bencher", "--at", "soon").refused("--at: found 'soon'")
