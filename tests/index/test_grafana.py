"""Runs the queries of Grafana's dashboards on a real PostgreSQL with the store's schema."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text

from streamgauge.catalog import results
from streamgauge.records.judgement import Evidence, Judgement, Outcome, ReleaseVerdict, Rerun, SelfTest
from streamgauge.results.index import Index, database
from streamgauge.stats.ab import compare
from streamgauge.stats.outcomes import Change
from tests.conftest import ROOT
from tests.index import example
from tests.index.conftest import fresh

PLACE = ROOT / "docker" / "grafana" / "provisioning"
DASHBOARDS = sorted((PLACE / "dashboards").glob("*.json"))
CHOSEN = {"benchmark": "'flights'", "experiment": "'late20','other'", "workload": "'sums','q7'", "system": "'spark'"}
FROM, TO = "'2026-03-01T00:00:00Z'", "'2026-03-31T00:00:00Z'"


def queries() -> dict[str, str]:
    """Queries that Grafana would run, by panel, annotation and variable."""
    found: dict[str, str] = {}
    for file in DASHBOARDS:
        made = json.loads(file.read_text())
        found |= {panel["title"]: target["rawSql"] for panel in made["panels"] for target in panel["targets"]}
        found |= {one["name"]: one["target"]["rawSql"] for one in made["annotations"]["list"]}
        found |= {one["name"]: one["query"] for one in made["templating"]["list"]}
    return found


def filled(sql: str) -> str:
    """Macros and variables as Grafana fills them."""
    sql = re.sub(r"\$__timeFilter\(([^()]+)\)", rf"\1 BETWEEN {FROM} AND {TO}", sql)
    sql = re.sub(r"\$\{(\w+):sqlstring\}", lambda found: CHOSEN[found[1]], sql)
    assert "$" not in sql, sql
    return sql


@pytest.fixture(scope="module")
def index(postgres: str, tmp_path_factory: pytest.TempPathFactory) -> Index:
    place = tmp_path_factory.mktemp("grafana")
    runs = example.three_runs(place)
    about = {"workload": "q7", "at": "2026-03-02T02:00:00+00:00"}
    runs.append(example.run(
        place, "suite",
        example.result("suite", 7.0, metric="output_rows", unit="rows", **about),
        example.result("suite", 1.0, metric="output_supported", unit="yes", **about),
    ))  # fmt: skip
    about["at"] = "2026-03-03T02:00:00+00:00"
    last = example.run(
        place, "suite2",
        example.result("suite2", 8.0, metric="output_rows", unit="rows", **about),
        example.result("suite2", 0.0, metric="output_supported", unit="yes", reason="no such operator", **about),
        example.result("suite2", 2.5, metric="query_seconds", unit="s", **about),
        example.result("suite2", 1.0, metric="output_supported", unit="yes", mode="batch", **about),
        example.result("suite2", 0.0, metric="output_correct", unit="yes", mode="batch", **about),
        example.result(
            "suite2", 3.5, metric="system_cpu_us_per_event_at_80pct", unit="us", claim="not settled", **about
        ),
        example.result(
            "suite2", 4e4, metric="sustainable_rate_events_per_s", unit="events/s", claim="estimated", **about
        ),
    )  # fmt: skip
    index = Index(fresh(postgres, "grafana"))
    for run in [*runs, last]:
        index.add_run(run)
    (key,) = [one.key for one in index.series(metric="event_latency_ms_p99") if one.machine["cores"] == 2]
    comparison = replace(
        compare([1.0] * 4, [1.1] * 4), ratio=1.1, noise_floor=0.02, detectable_effect=0.04, reason="it is"
    )
    evidences: dict[Outcome, Evidence] = {
        "regression": Rerun(change=Change(9, 0.1, None, 0.99, 1.0, 1.1), comparison=comparison),
        "self": SelfTest(comparison=comparison),
        "release_check": ReleaseVerdict(baseline="4.2.1", candidate="4.3.0", verdict="go"),
    }
    for outcome, evidence in evidences.items():
        results.judge(last, Judgement("suite2", key, about["at"], outcome, 0.1, evidence))
    index.add_run(last)
    return index


def ask(index: Index, sql: str) -> list[dict[str, Any]]:
    with database.transaction(index.engine) as connection:
        return [dict(row._mapping) for row in connection.execute(text(filled(sql).replace(":", r"\:")))]


@pytest.mark.parametrize("name", queries())
def test_each_query_is_answered_with_rows(index: Index, name: str) -> None:
    assert ask(index, queries()[name]), f"{name}: no row"


def test_a_curve_has_a_hole_where_the_figure_is_void_and_says_where_it_is_in_doubt(index: Index) -> None:
    rows = ask(index, queries()["Sustainable rate"])
    assert [(row["time"].date().isoformat(), row["value"], "estimated" in row["metric"]) for row in rows] == [
        ("2026-03-01", 5e4, False),
        ("2026-03-02", None, False),
        ("2026-03-03", 4e4, True),
    ]
    (cpu,) = ask(index, queries()["CPU of the system per event"])
    assert ", not settled, " in cpu["metric"]


def test_answers_that_changed_and_what_systems_can_do(index: Index) -> None:
    broken = ask(index, queries()["Answers that changed"])
    assert [(row["series"].split()[-1], row["before"], row["after"]) for row in broken] == [
        ("output_rows", 7.0, 8.0),
        ("output_supported", 1.0, 0.0),
    ]
    about = {"query": "q7", "system": "spark"}
    assert ask(index, queries()["Capabilities"]) == [
        {**about, "mode": "batch", "state": "wrong", "because": None},
        {**about, "mode": "streaming", "state": "unsupported", "because": "no such operator"},
    ]
    (judged,) = ask(index, queries()["Changes and what reruns said"])
    assert (judged["outcome"], judged["noise floor"], judged["detectable effect"]) == ("regression", 0.02, 0.04)


def test_every_panel_names_a_data_source_that_is_provisioned() -> None:
    sources = yaml.safe_load((PLACE / "datasources" / "streamgauge.yaml").read_text())["datasources"]
    known = {source["uid"] for source in sources}
    made = [json.loads(file.read_text()) for file in DASHBOARDS]
    assert {panel["datasource"]["uid"] for one in made for panel in one["panels"]} <= known
    assert all("password" not in source or source["password"] == "" for source in sources), "secrets are files"
    (provider,) = yaml.safe_load((PLACE / "dashboards" / "streamgauge.yaml").read_text())["providers"]
    assert Path(provider["options"]["path"]).name == "dashboards"
