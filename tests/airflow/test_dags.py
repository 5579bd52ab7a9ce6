"""DAGs as Airflow parses them, without its database and Spark; what they must look like follows the stage table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.airflow import services
from streamgauge.base.errors import UserError
from streamgauge.catalog.stages import STAGES
from tests.extras import blocker

ROOT = Path(__file__).resolve().parents[2]
BASE = """
source: {files: data.csv, time: {column: 0, unit: s}, header: false}
experiments:
  - {name: calm, target_percent: 0}
  - {name: wild, target_percent: 50}
"""
CELLS = """
workloads: [{name: all, query: passthrough}]
systems: [{name: one}, {name: two}]
"""
FILES = {
    "plain.yaml": "name: plain\ndescription: the plain one\nschedule: '0 3 * * *'" + BASE,
    "celled.yml": "name: celled\nsearch: {in_turns: false}\nadvice: {lost_percent: 1}" + BASE + CELLS,
    "turns.yaml": "name: turns" + BASE + CELLS,
    "poster.json": json.dumps(
        {
            "dataSource": {"file": "data.csv", "seperator": ","},
            "time": {"timeIndex": 0, "sourceTimeUnit": "ms"},
            "experimentDataConfigurations": [{"targetOutOfOrderFactor": 5}],
        }
    ),
    "auction.yaml": """
name: auction
source: {format: nexmark, nexmark: {events: 1000}}
experiments: [{name: calm, target_percent: 0}]
nightly: {schedule: "30 1 * * *"}
""",
    "versions.yaml": "name: versions\nrelease: {rate: 100}"
    + BASE
    + CELLS.replace("two}", "two}, {name: bad, example: true}"),
    "endless.yaml": "name: endless\nrelease: {rate: 100, seconds: 1.0e+14}" + BASE + CELLS,
    "broken.yaml": "name: broken\nexperiment: []" + BASE,
    "nightly.yaml": "name: nightly\nschedule: nightly" + BASE,
    "weekly.yaml": "name: weekly\nnightly: {schedule: weekly}" + BASE,
    "twin.yaml": "name: plain" + BASE,
    "stranger.yaml": """
name: stranger
description: "{{ 7*7 }} [x](javascript:x)"
source: {files: ["gs://stranger/{{ 7*7 }}.csv"], time: {column: 0, unit: s}, header: false}
experiments: [{name: own, target_percent: 5, delay: {distribution: "marker_module:delay"}}]
workloads: [{name: all, query: passthrough}]
systems:
  - {name: own, engine: "marker_module:Engine"}
  - {name: other, engine: job, bootstrap: "127.0.0.1:1", command: [none], security: {sasl.password: "${NOT_SET}"}}
search: {verdict: "marker_module:judge"}
metrics: {sinks: [{type: "marker_module:Sink"}]}
nightly: {notifiers: [{notifier: marker_module.Notifier}]}
release: {rate: 100}
""",
    "notes.txt": "not a benchmark",
}
PARSE = """
import json, sys
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

bag = DagBag(sys.argv[1])

def show(task):
    return {
        "after": sorted(task.upstream_task_ids), "rule": task.trigger_rule.value, "pool": task.pool,
        "slots": task.pool_slots, "retries": task.retries, "application": getattr(task, "application", None),
        "mapped": bool(list(task.iter_mapped_task_groups())),
        "outlets": [asset.uri for asset in getattr(task, "outlets", [])],
    }

print("PARSED" + json.dumps({
    "errors": bag.import_errors,
    "modules": sorted({name.partition(".")[0] for name, module in sys.modules.items() if module}),
    "dags": {
        name: {
            "tasks": {task.task_id: show(task) for task in dag.tasks},
            "params": {key: param.serialize() for key, param in dag.params.items()},
            "doc": dag.doc_md, "catchup": dag.catchup, "max_active_runs": dag.max_active_runs,
            "schedule": dag.timetable.summary if hasattr(dag.timetable, "summary") else str(dag.schedule),
            "display": dag.dag_display_name, "tags": sorted(dag.tags), "owner": dag.owner,
            "links": sorted({one.name for task in dag.tasks for one in getattr(task, "operator_extra_links", ())}),
            "serialized": len(json.dumps(DagSerialization.to_dict(dag))),
        }
        for name, dag in bag.dags.items()
    },
}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("configs")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    home = tmp_path_factory.mktemp("airflow")
    environment = os.environ | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS": "False",
        "STREAMGAUGE_CONFIGS": str(folder),
        "STREAMGAUGE_SLOTS": "4",
    }
    done = subprocess.run(
        [sys.executable, "-c", blocker("airflow") + PARSE, str(ROOT / "dags")],
        env=environment, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (home / "airflow.db").exists()
    return json.loads(done.stdout.rpartition("PARSED")[2])


def tasks(parsed: Any, name: str) -> dict[str, Any]:
    return dict(parsed["dags"][f"streamgauge_{name}"]["tasks"])


def test_one_dag_per_file_that_loads(parsed: Any) -> None:
    assert sorted(parsed["dags"]) == [
        "streamgauge-nightly_auction", "streamgauge-nightly_stranger", "streamgauge-release_stranger",
        "streamgauge-release_versions",
        "streamgauge_auction", "streamgauge_celled", "streamgauge_endless", "streamgauge_plain", "streamgauge_poster",
        "streamgauge_stranger", "streamgauge_turns",
        "streamgauge_versions",
    ]  # fmt: skip


def test_files_that_do_not_load_are_one_import_error_apart_from_the_dags(parsed: Any) -> None:
    [(file, message)] = parsed["errors"].items()
    assert Path(file).name == "config_errors.py"
    assert "broken.yaml:2:1: experiment: unknown key; did you mean experiments?" in message
    assert "nightly.yaml: schedule: found 'nightly', allowed: a cron expression" in message
    assert "weekly.yaml: nightly.schedule: found 'weekly', allowed: a cron expression" in message
    assert "twin.yaml: name: found 'plain'" in message
    assert "endless.yaml: the DAG of its release check cannot be built: OverflowError: " in message
    assert len(message.splitlines()) == 1


def test_the_terminal_of_ui_names_each_file_that_does_not_load_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("broken.yaml", "poster.json", "weekly.yaml"):
        (tmp_path / name).write_text(FILES[name])
    monkeypatch.setattr(services, "_served", lambda *_: 0)
    services.ui(tmp_path, tmp_path / "artifacts", port=0, master=None)
    broken, weekly = capsys.readouterr().out.splitlines()
    mistake = "experiment: unknown key; did you mean experiments?"
    assert broken == f"left out: {tmp_path}/broken.yaml:2:1: {mistake}"
    assert weekly.startswith(f"left out: {tmp_path}/weekly.yaml: nightly.schedule: found 'weekly', allowed: a cron")


def test_a_folder_that_airflow_s_database_cannot_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "poster.json").write_text(FILES["poster.json"])
    with pytest.raises(UserError, match=r"what\?/airflow/ui: found a \? in the name, .* choose another folder$"):
        services.ui(tmp_path, tmp_path / "what?", port=0, master=None)


def test_parsing_imports_nothing_that_a_file_names(parsed: Any) -> None:
    assert "marker_module" not in parsed["modules"]
    assert "marker_module" not in str(parsed["errors"]), "nobody has tried"


def test_neither_spark_nor_great_expectations_is_imported(parsed: Any) -> None:
    assert {"airflow", "streamgauge"} <= set(parsed["modules"])
    assert not {"pyspark", "great_expectations"} & set(parsed["modules"])


@pytest.mark.parametrize("name", ["plain", "celled", "turns", "auction"])
def test_each_stage_is_a_task_behind_what_it_reads(parsed: Any, name: str) -> None:
    found = tasks(parsed, name)
    by_stage = {task.rpartition(".")[2]: task for task in found}
    stages = [
        stage
        for stage in STAGES
        if (stage.scope not in ("workload", "cell") or name == "celled")
        and (stage.source == "any" or name == "auction")
        and (not stage.is_measurement or stage.name in ("search", "latency"))  # others only if the file asks for them
        and not stage.nightly
        and stage.in_turns in (None, name == "turns")
    ]
    assert set(by_stage) == {s.name for s in stages} | {"plan", "finish"} | (
        {"workloads", "cells"} if name == "celled" else set()
    )

    def before(task: str) -> set[str]:
        direct = set(found[task]["after"])
        return direct.union(*map(before, direct))

    for stage in stages:
        task = found[by_stage[stage.name]]
        assert Path(task["application"]) == ROOT / "jobs" / f"{stage.job}.py"
        assert task["mapped"] is (stage.scope != "benchmark")
        assert task["outlets"] == [f"streamgauge://{name}/{stage.writes}"]
        assert (task["pool"], task["slots"]) == ("streamgauge", 4 if stage.measures else 1)
        makers = {by_stage[other.name] for other in stages if other.writes in stage.reads}
        assert makers | {"plan"} <= before(by_stage[stage.name])
    assert before("finish") == set(found) - {"finish"}


def test_a_failure_stops_neither_the_cells_nor_the_report_but_fails_the_run(parsed: Any) -> None:
    rules = {task: shown["rule"] for task, shown in tasks(parsed, "celled").items()}
    assert {task for task, rule in rules.items() if rule == "all_done"} == {"cells", "report"}
    assert rules["finish"] == "none_failed"
    # the group of cells waits for the task that lists them, and for nothing that may have failed
    search = tasks(parsed, "celled")["per_cell.search"]
    assert search["after"] == ["cells"]


def test_cells_that_take_turns_are_one_task_after_every_stream(parsed: Any) -> None:
    found = tasks(parsed, "turns")
    assert (found["turns"]["rule"], found["turns"]["after"]) == ("all_done", ["per_experiment.validate"])
    assert "turns" in found["report"]["after"]


def test_the_form_offers_what_may_be_changed(parsed: Any) -> None:
    params = parsed["dags"]["streamgauge_plain"]["params"]
    assert set(params) == {"experiments", "scale", "seed", "outputs"}
    assert params["experiments"]["value"] == ["calm", "wild"]
    assert params["experiments"]["schema"]["items"] == {"type": "string", "enum": ["calm", "wild"]}
    assert params["scale"]["schema"]["type"] == "number"
    assert params["scale"]["schema"]["exclusiveMinimum"] == 0
    assert params["seed"]["schema"]["type"] == ["null", "integer"]
    assert params["outputs"]["schema"]["type"] == ["null", "array"]  # may be emptied again
    assert params["outputs"]["schema"]["examples"] == ["parquet", "csv", "csv-parts", "jsonl", "kafka"]


def test_the_form_of_a_benchmark_with_cells_offers_queries_systems_and_how_deep_to_search(parsed: Any) -> None:
    params = parsed["dags"]["streamgauge_celled"]["params"]
    plain = parsed["dags"]["streamgauge_plain"]["params"]
    assert set(params) - set(plain) == {"workloads", "systems", "cells", "processes", "proof_steps", "quick"}
    assert (params["workloads"]["value"], params["systems"]["value"]) == (["all"], ["one", "two"])
    assert params["cells"]["value"] is None
    assert params["cells"]["schema"]["examples"] == ["calm.all.one", "calm.all.two", "wild.all.one", "wild.all.two"]
    assert (params["processes"]["schema"]["minimum"], params["processes"]["schema"]["maximum"]) == (1, 20)
    assert (params["proof_steps"]["schema"]["minimum"], params["proof_steps"]["schema"]["maximum"]) == (0, 4)


def test_dags_have_names_for_people_an_owner_tags_and_a_button_that_leads_to_the_page(parsed: Any) -> None:
    shown = {
        name: (dag["display"], dag["tags"], dag["owner"], dag["links"])
        for name, dag in parsed["dags"].items() if name.endswith(("_celled", "_versions", "nightly_auction"))
    }  # fmt: skip
    button = ["Page of the run"]
    assert shown == {
        "streamgauge_celled": ("celled: benchmark", ["benchmark", "streamgauge"], "streamgauge", button),
        "streamgauge_versions": ("versions: benchmark", ["benchmark", "streamgauge"], "streamgauge", button),
        "streamgauge-nightly_auction": ("auction: every night", ["nightly", "streamgauge"], "streamgauge", button),
        "streamgauge-release_versions": ("versions: release check", ["release", "streamgauge"], "streamgauge", button),
    }


def test_a_dag_tells_what_it_is_and_when_it_runs(parsed: Any) -> None:
    plain = parsed["dags"]["streamgauge_plain"]
    assert "the plain one" in plain["doc"]
    assert all(
        f"| {stage.name} |" in plain["doc"]
        for stage in STAGES
        if stage.scope not in ("workload", "cell")
        and stage.source == "any"
        and not stage.nightly
        and not stage.in_turns
    )
    assert "| wild | 50 % | uniform 0s…2s | 42 |" in plain["doc"]
    assert (plain["catchup"], plain["max_active_runs"], plain["schedule"]) == (False, 1, "0 3 * * *")
    assert plain["serialized"] > 1000


def test_a_night_is_judged_and_told_whatever_failed_before(parsed: Any) -> None:
    night = parsed["dags"]["streamgauge-nightly_auction"]
    assert (night["schedule"], parsed["dags"]["streamgauge_auction"]["schedule"]) == ("30 1 * * *", "None")
    found = night["tasks"]
    assert set(found) == set(tasks(parsed, "auction")) | {"regressions", "notify"}
    assert {"per_experiment.nexmark", "report"} <= set(found["regressions"]["after"])
    assert (found["regressions"]["rule"], found["regressions"]["slots"]) == ("all_done", 4)
    assert (found["notify"]["after"], found["notify"]["rule"]) == (["regressions"], "all_done")
    assert {"notify", "regressions"} <= set(found["finish"]["after"])


def test_a_release_check_is_a_dag_of_its_own_whose_form_offers_the_systems(parsed: Any) -> None:
    dag = parsed["dags"]["streamgauge-release_versions"]
    tasks = dag["tasks"]
    assert {name: task["after"] for name, task in tasks.items()} == {
        "plan": [], "ingest": ["plan"], "per_experiment.generate": ["ingest", "plan"],
        "release": ["per_experiment.generate"], "verdict": ["release"],
    }  # fmt: skip
    assert Path(tasks["release"]["application"]) == ROOT / "jobs" / "release.py"
    assert (tasks["release"]["pool"], tasks["release"]["slots"]) == ("streamgauge", 4)
    assert tasks["verdict"]["retries"] == 0
    assert {key: (param["value"], param["schema"]["enum"]) for key, param in dag["params"].items()} == {
        "baseline": ("one", ["one", "two", "bad"]), "candidate": ("two", ["one", "two", "bad"]),
    }  # fmt: skip
    assert dag["schedule"] in ("Never, external triggers only", "None")
