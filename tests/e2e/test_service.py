"""Airflow as docs/deploy.md has it: PostgreSQL with passwords, users with roles, no secret to be read anywhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import yaml

from streamgauge.base import process_sessions
from streamgauge.catalog.run_log import RunLog
from tests.conftest import ROOT
from tests.e2e.processes import free_port, wait_for, write_config
from tests.index.conftest import serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
RUNS = "/api/v2/dags/streamgauge_solo/dagRuns"
READER = "reader's own password"


def documented(name: str) -> str:
    """The commands under that mark in docs/deploy.md."""
    [block] = re.findall(
        rf"<!-- run: {name} -->\n```sh\n(.+?)```", (ROOT / "docs" / "deploy.md").read_text(), re.DOTALL
    )
    return block


@dataclass
class Service:
    place: Path
    url: str
    database: int
    server: Path
    programs: Path
    started: dict[str, process_sessions.Leader] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Starts a documented service, as systemd would."""
        environment = dict(line.split("=", 1) for line in (self.place / "environment").read_text().split("\0")[:-1])
        [line] = [line for line in documented("services").splitlines() if line.split()[-1] == name]
        self.started[name] = process_sessions.Leader(
            ["bash", "-c", f"exec {line}"], environment, self.place / f"{name}.log"
        )

    def restart(self, name: str) -> None:
        process_sessions.stop(self.started[name])
        self.start(name)

    def keep(self) -> None:
        """Restarts services that ended: Restart=always."""
        for name in [name for name, process in self.started.items() if process.poll() is not None]:
            self.start(name)

    def restart_database(self) -> None:
        subprocess.run(
            [self.programs / "pg_ctl", "-D", self.server / "data", "-w", "-m", "fast", "-l", self.server / "log",
             "restart"],
            check=True, user="nobody" if os.geteuid() == 0 else None, cwd=self.server, stdout=subprocess.DEVNULL,
            timeout=60,
        )  # fmt: skip

    def __call__(self, path: str, body: Any = None, token: str | None = None) -> tuple[int, Any]:
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, None

    def token(self, user: str, password: str) -> str:
        status, answer = self("/auth/token", {"username": user, "password": password})
        assert status == 201
        return str(answer["access_token"])

    def secret(self, name: str) -> str:
        return (self.place / "secrets" / name).read_text()

    def secrets(self) -> set[str]:
        """Passwords, keys and tokens, none of which may be seen anywhere."""
        texts = {file.name: file.read_text() for file in (self.place / "secrets").iterdir()}
        connection = yaml.safe_load(texts.pop("connections.yaml"))["streamgauge_spark"]
        return {*texts.values(), connection["password"]}


def run(script: str, folder: Path, **variables: str) -> None:
    """Runs the commands in a shell as a person has it, ended by the first failure."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **variables}
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    place = tmp_path_factory.mktemp("service")
    database, port, logs, health = (free_port() for _ in range(4))
    for folder in ("benchmarks", "conf", "events", "secrets"):
        (place / folder).mkdir()
    write_config(place / "benchmarks" / "solo.yaml", ["{name: calm, target_percent: 0}"])
    (place / "conf" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file:{place}/events\n"
        "spark.streamgauge.historyServer http://history.example.org:18080\n"
    )
    (place / "secrets" / "reader_password").write_text(READER)
    (place / "service.env").write_text(
        f"STREAMGAUGE_HOME={ROOT}\nSECRETS={place}/secrets\nAIRFLOW_HOME={place}/airflow\n"
        f"AIRFLOW_URL=http://127.0.0.1:{port}\nAIRFLOW_INSIDE=http://127.0.0.1:{port}\n"
        f"STREAMGAUGE_ARTIFACTS={place}/artifacts\nSTREAMGAUGE_CONFIGS={place}/benchmarks\n"
        f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}\n"
        f"SPARK_CONF_DIR={place}/conf\nAIRFLOW__API__HOST=127.0.0.1\nAIRFLOW__API__PORT={port}\nAIRFLOW__API__WORKERS=1\n"
        f"AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT={logs}\n"
        f"AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT={health}\nAIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC=1\n"
    )
    with serving(f"-c listen_addresses=127.0.0.1 -p {database}", hosts="scram-sha-256") as (server, programs):
        run(
            f"cd {ROOT}\n{documented('database')}", place,
            SECRETS=str(place / "secrets"), PATH=f"{programs}:{os.environ['PATH']}",
            PGHOST=str(server), PGPORT=str(database),
        )  # fmt: skip
        connection = "{conn_type: spark, host: 'local[2]', login: somebody, password: the-cluster-s-own-password}"
        (place / "secrets" / "connections.yaml").write_text(f"streamgauge_spark: {connection}")
        run(documented("airflow") + "env --null > environment", place)
        found = Service(place, f"http://127.0.0.1:{port}", database, server, programs)
        try:
            for line in documented("services").splitlines():
                found.start(line.split()[-1])
            wait_for(lambda: healthy(found), "healthy Airflow", 240)
            yield found
        finally:
            process_sessions.stop(*found.started.values())


def healthy(service: Service) -> bool:
    try:
        status, health = service("/api/v2/monitor/health")
    except (OSError, HTTPException):
        return False
    parts = ("metadatabase", "scheduler", "dag_processor")
    return status == 200 and all(health[part]["status"] == "healthy" for part in parts)


def test_only_who_may_can_trigger_a_run_and_no_secret_is_seen_in_it(service: Service) -> None:
    body = {"logical_date": None, "dag_run_id": "one", "conf": {}}
    assert service("/api/v2/dags")[0] == 401
    assert service(RUNS, body)[0] == 401
    assert service(RUNS, body, "no.real.token")[0] in (401, 403)
    assert service("/auth/token", {"username": "admin", "password": READER})[0] == 401

    reader = service.token("reader", READER)
    admin = service.token("admin", service.secret("admin_password"))
    wait_for(lambda: service("/api/v2/dags/streamgauge_solo", token=reader)[0] == 200, "DAG", 240)
    assert service(RUNS, body, reader)[0] == 403
    assert service("/api/v2/connections", token=reader)[0] == 403
    assert service(RUNS, token=reader)[1]["total_entries"] == 0

    assert service(RUNS, body, admin)[0] == 200
    assert service("/api/v2/pools/streamgauge", token=admin)[1]["slots"] == 2
    ingest = f"{RUNS}/one/taskInstances/ingest"
    arguments: set[str] = set()

    def ended() -> bool:
        for process in process_sessions.members({leader.pid: leader.since for leader in service.started.values()}):
            try:
                arguments.update(process.cmdline())
            except psutil.Error:
                continue
        return service(ingest, token=admin)[1]["state"] in ("success", "failed", "upstream_failed")

    wait_for(ended, "end of ingest", 240)
    task = service(ingest, token=admin)[1]
    log = json.dumps(service(f"{ingest}/logs/1", token=admin)[1])
    assert task["state"] == "success", log
    assert any("SparkSubmit" in argument for argument in arguments)
    assert "events written" in log
    assert str(ROOT / "jobs" / "ingest.py") in json.dumps(task["rendered_fields"])

    [record] = RunLog(service.place / "artifacts" / "runs" / "solo-one").stages()[:1]
    spark = record.outcome["spark"]
    assert spark["history"] == f"http://history.example.org:18080/history/{spark['id']}/"
    assert [place for place in (service.place / "events").iterdir() if spark["id"] in place.name]

    places = {}
    for folder, _, names in os.walk(service.place):
        for file in (Path(folder) / name for name in names):
            with suppress(FileNotFoundError):  # the run goes on there
                if file.is_file() and "secrets" not in file.parts:
                    places[str(file)] = file.read_bytes()
    places |= {"log": log.encode(), "rendered": json.dumps(task).encode(), "arguments": "\n".join(arguments).encode()}
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


def test_a_run_goes_on_while_api_server_and_database_are_restarted(service: Service) -> None:
    """Restarts each service as docs/deploy.md says under "Upgrade and restart"."""
    admin = service.token("admin", service.secret("admin_password"))  # the run of the test before goes on

    def states() -> dict[str, str]:
        service.keep()
        try:
            status, answer = service(f"{RUNS}/one/taskInstances", token=admin)
        except (OSError, HTTPException):
            return {}  # it is away
        return {task["task_id"]: task["state"] for task in answer["task_instances"]} if status == 200 else {}

    def done(task: str) -> bool:
        return states().get(task) in ("success", "failed", "upstream_failed")

    wait_for(lambda: states().get("analyze") == "running" or done("analyze"), "stage in the middle", 240)
    service.restart("api-server")
    service.restart_database()  # no task can end meanwhile
    wait_for(lambda: service.keep() or healthy(service), "healthy Airflow", 240)
    wait_for(lambda: done("finish"), "end of the run", 400)
    assert set(states().values()) == {"success"}
    stages = RunLog(service.place / "artifacts" / "runs" / "solo-one").stages()
    finished = [stage.stage for stage in stages if stage.state == "done"]
    assert sorted(set(finished)) == ["analyze", "generate", "ingest", "report", "validate"]
