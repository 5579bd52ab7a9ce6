"""Airflow as docs/deploy.md has it: PostgreSQL with passwords, users with roles, no secret to be read anywhere.

Artifacts are on an S3-compatible store, and metrics go to a backend. In the run, one experiment of two fails, is
corrected and is tried again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import psycopg
import pytest

from streamgauge.app.airflow import summary
from streamgauge.base import processes
from streamgauge.base.jsonl import read_jsonl
from streamgauge.base.places import Remote
from streamgauge.catalog.run_log import RunLog
from streamgauge.config import load
from streamgauge.results.index import index_run
from streamgauge.streams.keys import events_key, stream_key
from tests.e2e.browser import AirflowPage, chromium
from tests.e2e.processes import wait_for
from tests.e2e.rest import Airflow
from tests.e2e.service import CORRECTED, DAG, LATE, NAMES, ONE, READER, RUN, RUNS, Service, healthy, served
from tests.metrics.backend import Backend
from tests.metrics.test_sinks import SCHEMA
from tests.stores import object_store

pytestmark = [pytest.mark.e2e, pytest.mark.prove, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("service")
    with (
        object_store("the-store-s-own-secret") as (there, variables),
        Backend() as backend,
        served(place, there, variables, backend) as found,
    ):
        yield found


@dataclass(frozen=True)
class Begun:
    """Facts of the run after its first stage: the task, its log, and arguments of all processes meanwhile."""

    task: dict[str, Any]
    log: str
    arguments: set[str]


@pytest.fixture(scope="module")
def page(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowPage]:
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield AirflowPage(browser, service.url, "admin", service.secret("admin_password"))


@pytest.fixture(scope="module")
def begun(service: Service, page: AirflowPage) -> Begun:
    admin = service.token("admin", service.secret("admin_password"))
    wait_for(lambda: service(f"/api/v2/dags/{DAG}", token=admin)[0] == 200, "DAG", 240, every=2)
    page.trigger(DAG, RUN, leave_out=["other", "second"])
    ingest = f"{ONE}/taskInstances/ingest"
    arguments: set[str] = set()

    def ended() -> bool:
        for process in processes.members({leader.pid: leader.since for leader in service.started.values()}):
            try:
                arguments.update(process.cmdline())
            except psutil.Error:
                continue
        return service(ingest, token=admin)[1]["state"] in ("success", "failed", "upstream_failed")

    wait_for(ended, "end of ingest", 240, every=2)
    task, log = service(ingest, token=admin)[1], service(f"{ingest}/logs/1", token=admin)[1]
    return Begun(task, json.dumps(log), arguments)


@dataclass(frozen=True)
class Ended:
    """Facts of the run after its first end: tasks, page, trials, and what the backend of metrics was told."""

    tasks: dict[tuple[str, str], dict[str, Any]]
    page: str
    trials: list[dict[str, Any]]
    latency_trials: list[dict[str, Any]]
    told: list[dict[str, Any]]


@pytest.fixture(scope="module")
def ended(service: Service, begun: Begun) -> Ended:
    """The run to its end, with a restart of each service as docs/deploy.md says under "Upgrade and restart"."""
    assert begun.task["state"] == "success", begun.log
    airflow = Airflow(service.url, "admin", service.secret("admin_password"))

    def state() -> str:
        service.keep()
        return str(airflow.told(f"/dags/{DAG}/dagRuns/pair%2B1").get("state"))

    def well() -> bool:
        service.keep()
        return healthy(service)

    wait_for(lambda: RunLog(service.run).latest("analyze"), "stage in the middle", 240, every=2)
    service.restart("api-server")
    service.restart_database()  # no task can end meanwhile
    wait_for(well, "healthy Airflow", 240)
    wait_for(lambda: state() in ("success", "failed"), "end of the run", 600, every=4)
    cell = service.run / "cells" / "late.all.known"
    trials, latency_trials = (read_jsonl(cell / f"{name}.jsonl") for name in ("trials", "latency-trials"))
    tasks = airflow.finished(DAG, RUN, NAMES)
    return Ended(tasks, service.page(), trials, latency_trials, list(service.backend.bodies))


def test_only_who_may_can_trigger_a_run(service: Service, begun: Begun) -> None:
    assert begun.task["state"] == "success", begun.log
    body: dict[str, Any] = {"logical_date": None, "dag_run_id": "refused", "conf": {}}
    assert service("/api/v2/dags")[0] == 401
    assert service(RUNS, body)[0] == 401
    assert service(RUNS, body, "no.real.token")[0] in (401, 403)
    assert service("/auth/token", {"username": "admin", "password": READER})[0] == 401

    reader = service.token("reader", READER)
    admin = service.token("admin", service.secret("admin_password"))
    assert service(f"/api/v2/dags/{DAG}", token=reader)[0] == 200
    assert service(RUNS, body, reader)[0] == 403
    assert service("/api/v2/connections", token=reader)[0] == 403
    assert [run["dag_run_id"] for run in service(RUNS, token=reader)[1]["dag_runs"]] == [RUN]
    assert service("/api/v2/pools/streamgauge", token=admin)[1]["slots"] == 2


def test_no_secret_is_seen_in_a_run(service: Service, begun: Begun) -> None:
    assert begun.task["state"] == "success", begun.log
    assert any("SparkSubmit" in argument for argument in begun.arguments)
    assert "events written" in begun.log
    assert set(begun.task["rendered_fields"]) == {"run", "overrides", "scope"}, "nothing else is a template"

    [record] = RunLog(service.run).stages()[:1]
    spark = record.outcome["spark"]
    assert spark["history"] == f"http://history.example.org:18080/history/{spark['id']}/"
    assert [place for place in (service.place / "events").iterdir() if spark["id"] in place.name]

    run = service.run
    assert isinstance(run, Remote)
    places = {str(file): file.read_bytes() for file in run.changes()}
    for folder, _, names in os.walk(service.place):
        for file in (Path(folder) / name for name in names):
            with suppress(FileNotFoundError):  # the run goes on there
                if file.is_file() and "secrets" not in file.parts:
                    places[str(file)] = file.read_bytes()
    places |= {
        "log": begun.log.encode(),
        "rendered": json.dumps(begun.task).encode(),
        "arguments": "\n".join(begun.arguments).encode(),
    }
    assert any(b"ingest took" in text for text in places.values()), "the logs are among them"
    seen = [place for place, text in places.items() for secret in service.secrets() if secret.encode() in text]
    assert seen == []


def test_each_role_of_the_database_sees_only_its_own(service: Service) -> None:
    def as_role(role: str, name: str, command: str) -> str | None:
        password = service.secret("grafana_reader_password" if role == "grafana" else f"{role}_password")
        try:
            with psycopg.connect(
                host="127.0.0.1", port=service.database, user=role, password=password, dbname=name
            ) as c:
                c.execute(command)
        except psycopg.Error as refusal:
            return str(refusal)
        return None

    assert as_role("results", "results", "CREATE TABLE figures (x int)") is None
    assert as_role("grafana", "results", "SELECT * FROM figures") is None
    assert "permission denied" in str(as_role("grafana", "results", "DELETE FROM figures"))
    assert "permission denied" in str(as_role("airflow", "results", "SELECT 1"))
    assert "permission denied" in str(as_role("results", "airflow", "SELECT 1"))
    assert "permission denied" in str(as_role("results", "results", "CREATE ROLE more"))
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(host="127.0.0.1", port=service.database, user="postgres", password="", dbname="airflow")


def test_a_run_goes_on_while_api_server_and_database_are_restarted(service: Service, ended: Ended) -> None:
    assert [key for key, task in ended.tasks.items() if task["state"] == "failed"] == [
        ("per_experiment.generate", "wild"), ("", ""),
    ]  # fmt: skip
    finished = {stage.stage for stage in RunLog(service.run).stages() if stage.state == "done"}
    assert finished == {"ingest", "analyze", "generate", "validate", "search", "latency", "report"}


def test_one_bad_experiment_fails_visibly(service: Service, ended: Ended) -> None:
    assert {key: task["state"] for key, task in ended.tasks.items()} == {
        ("", ""): "failed",
        ("plan", ""): "success",
        ("ingest", ""): "success",
        ("analyze", ""): "success",
        ("per_experiment.generate", "late"): "success",
        ("per_experiment.generate", "wild"): "failed",
        ("per_experiment.validate", "late"): "success",
        ("per_experiment.validate", "wild"): "upstream_failed",
        ("cells", ""): "success",
        ("per_cell.search", "late"): "success",
        ("per_cell.latency", "late"): "success",
        ("report", ""): "success",
        ("finish", ""): "upstream_failed",
    }
    failed = ended.tasks["per_experiment.generate", "wild"]
    assert failed["rendered_map_index"] == "wild"
    wild = [stage for stage in RunLog(service.run).stages() if stage.scope == {"experiment": "wild"}]
    [mistake] = [stage for stage in wild if stage.state == "failed"]  # a user's mistake is not tried again
    assert (mistake.stage, mistake.cause) == ("generate", "mistake")
    airflow = Airflow(service.url, "admin", service.secret("admin_password"))
    task = f"/dags/{DAG}/dagRuns/pair%2B1/taskInstances/per_experiment.generate"
    log = json.dumps(airflow(f"{task}/logs/{failed['try_number']}?map_index=1"))
    reason = str(mistake.error)
    assert f"streamgauge generate: {reason[:40]}" in log.replace("\u00a0", " ")
    assert reason[:40] in ended.page

    [broken] = airflow("/importErrors")["import_errors"]
    assert "broken.yaml: line 1: not valid YAML" in broken["stack_trace"]


def test_the_run_is_on_the_store_and_leaves_only_what_it_must_here(
    service: Service, ended: Ended, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, benchmark = service.store, load(service.place / "benchmarks" / "pair.yaml")
    assert store.runs() == [service.run]
    late = benchmark.experiment("late")
    stream = store.need("stream", stream_key(store, benchmark, late), "generate").manifest
    assert stream["achieved_out_of_order"] == stream["target_out_of_order"] > 0
    [trial] = ended.trials
    assert trial["observation"]["taken"] == trial["observation"]["offered"] > 350, "a backlog of a second, and more"
    [latency] = ended.latency_trials
    assert latency["observation"]["taken"] == latency["observation"]["offered"] == 500
    assert json.loads((service.run / "cells" / "late.all.known" / "latency.json").read_text())[0]["valid"]
    summary.show(benchmark, store, RunLog(service.run))
    assert "late all known" in capsys.readouterr().out
    left = {file.name for file in (service.place / "artifacts").rglob("*") if file.is_file()}
    assert left == {".claim.json"}, "who works on the run is a lock of this machine"
    monkeypatch.chdir(tmp_path)  # where no database is named, the index is a file here
    index_run(store.root, service.run.name)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["results.db"]


@pytest.mark.usefixtures("ended")
def test_the_page_is_one_click_from_each_task_for_whoever_may_see_dags(service: Service) -> None:
    reader = service.token("reader", READER)
    links = service(f"{ONE}/taskInstances/report/links", token=reader)[1]["extra_links"]
    assert links == {"Page of the run": f"{service.url}/streamgauge/runs/{service.run.name}/index.html"}
    page = links["Page of the run"].removeprefix(service.url)
    assert service.text(page, reader) == (200, service.url + page, service.page())
    assert f'href="runs/{service.run.name}/index.html"' in service.text("/streamgauge/", reader)[2]
    assert service.text(page, "no.real.token")[0] in (401, 403)
    assert service.text(page)[0] == 401
    _, address, _ = service.text(page, accept="text/html")
    assert "/auth/login" in address, "a person is led to the login page"


@pytest.mark.usefixtures("ended")
def test_the_events_of_assets_carry_what_was_made(service: Service) -> None:
    admin = service.token("admin", service.secret("admin_password"))
    told = service("/api/v2/assets/events?limit=100", token=admin)[1]["asset_events"]
    by_name = {event["name"]: event["extra"] for event in told}
    cell = {"experiment": "late", "workload": "all", "system": "known"}
    stream = service.store.find("stream", by_name["pair stream"]["key"])
    assert stream is not None
    names = ("events", "sha256", "target_out_of_order", "achieved_out_of_order")
    assert by_name["pair stream"] == {
        "run": service.run.name, "experiment": "late", "key": stream.key, "reused": False,
        **{name: stream.manifest[name] for name in names},
    }  # fmt: skip
    search = json.loads((service.run / "cells" / "late.all.known" / "search.json").read_text())
    rate = search["sustainable_rate_events_per_s"]
    assert {**cell, "sustainable_rate_events_per_s": rate}.items() <= by_name["pair search"].items()
    assert by_name["pair page"] == {"run": service.run.name, "page": str(service.run / "index.html")}


def test_each_stage_tells_the_backend_of_metrics_what_its_records_say(service: Service, ended: Ended) -> None:
    for body in ended.told:
        jsonschema.validate(body, SCHEMA, format_checker=jsonschema.FormatChecker())
    told = {
        (m["step"], m["name"]["name"]): m["committed"]
        for body in ended.told if body["final"]
        for kind in ("counters", "gauges", "distributions") for m in body[kind]
    }  # fmt: skip
    assert {step for step, name in told if name == "seconds"} == {s.stage for s in RunLog(service.run).stages()}
    benchmark = load(service.place / "benchmarks" / "pair.yaml")
    events = service.store.need("events", events_key(service.store, benchmark), "ingest")
    assert told["ingest", "ingested"] == events.manifest["events"], "counted on Spark's workers"
    for stage, [trial] in (("search", ended.trials), ("latency", ended.latency_trials)):
        seen, step = trial["observation"], f"{stage}/late.all.known"
        assert [told[step, name] for name in ("trials", "events_offered", "events_taken")] == [
            1, seen["offered"], seen["taken"],
        ]  # fmt: skip
        assert told[step, "backlog"]["value"] == seen["offered"] - seen["taken"]
        # a proof trial may end before a row counts that came after its backlog
        counted = told.get((step, "event_latency_ns"), {"count": 0})["count"]
        assert counted == trial["details"]["event_latency_ns"]["count"]
        assert counted > 0 or stage == "search"


@pytest.mark.usefixtures("ended")
def test_a_cleared_task_of_a_corrected_experiment_builds_only_what_is_missing(
    service: Service, page: AirflowPage
) -> None:
    data = service.store.root / "data"
    assert isinstance(data, Remote)

    def built() -> dict[Path, datetime]:
        return {file: time for file, time in data.changes().items() if file.name == "manifest.json"}

    def searched() -> list[Any]:
        cell = service.run / "cells" / "late.all.known"
        return [read_jsonl(cell / f"{name}.jsonl") for name in ("windows", "trials")]

    before, kept = built(), searched()
    airflow = Airflow(service.url, "admin", service.secret("admin_password"))
    service.plan(LATE, CORRECTED)
    page.clear(DAG, RUN, "per_experiment.generate/mapped/1")
    begun_again = ("queued", "running", "success")
    wait_for(lambda: airflow.told(f"/dags/{DAG}/dagRuns/pair%2B1").get("state") in begun_again, "the cleared run", 60)
    tasks = airflow.finished(DAG, RUN, NAMES)
    assert {task["state"] for task in tasks.values()} == {"success"}
    after = built()
    assert before.items() <= after.items(), "what was built stays untouched"
    added = {file.relative_to(data).parts[:2] for file in after.keys() - before.keys()}
    assert sorted(kind for kind, _ in added) == ["stream", "validation"]
    assert searched() == kept, "a search that has ended measures nothing again"
    generated = [s.scope["experiment"] for s in RunLog(service.run).stages() if s.stage == "generate"]
    assert sorted(generated) == ["late", "wild", "wild"]
    benchmark = load(service.place / "benchmarks" / "pair.yaml")
    key = stream_key(service.store, benchmark, benchmark.experiment("wild"))
    assert ("stream", key) in added
    address, text = page.follow(DAG, RUN, "report", "Page of the run")
    assert address == f"{service.url}/streamgauge/runs/{service.run.name}/index.html"
    assert service.store.need("stream", key, "generate").manifest["sha256"][:8] in text
