"""Airflow as a service, started by the commands of docs/deploy.md, with artifacts on an S3-compatible store."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

import yaml

from streamgauge.base import processes
from streamgauge.catalog.artifacts import Store
from tests.conftest import ROOT
from tests.e2e.processes import free_port, wait_for, write_config
from tests.index.conftest import serving
from tests.metrics.backend import Backend

DAG, RUN = "streamgauge_pair", "pair+1"
RUNS = f"/api/v2/dags/{DAG}/dagRuns"
ONE = f"{RUNS}/pair%2B1"
LATE = "{name: late, target_percent: 20, delay: {max: 2h}, seed: 7}"
IMPOSSIBLE = "{name: wild, target_percent: 80, delay: {max: 1ms}}"
CORRECTED = "{name: wild, target_percent: 30, delay: {max: 2h}}"
NAMES = ["late", "wild"]
CELL = """
workloads: [{{name: all, query: passthrough}}, {{name: other, query: passthrough}}]
systems: [{{name: known, engine: known, capacity: 3e5, trigger: 50ms}}, {{name: second, engine: known}}]
cells:
  - {{experiment: late, workload: all, system: known}}
  - {{experiment: late, workload: all, system: second}}
  - {{experiment: late, workload: other, system: known}}
replay: {{max_slip: 3s}}
search:
  max_rate: 500
  warmup_seconds: 0
  window_seconds: 0.5
  recovery_seconds: 5
  max_age: 1s
  proof_steps: 1
  margin: 0.3
  yardstick: false
latency: {{fractions: [1.0], seconds: 1}}
metrics:
  sinks: [{{type: http, url: {url}}}]
"""
READER = "reader's own password"


def documented(name: str) -> str:
    """The commands under that mark in docs/deploy.md."""
    block: str
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
    artifacts: str
    """the place on the store"""
    variables: dict[str, str]
    """what programs find in their environment to reach the store"""
    backend: Backend
    started: dict[str, processes.Leader] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Starts a documented service, as systemd would."""
        environment = dict(line.split("=", 1) for line in (self.place / "environment").read_text().split("\0")[:-1])
        [line] = [line for line in documented("services").splitlines() if line.split()[-1] == name]
        command = ["bash", "-c", f"cd {self.place} && exec {line}"]
        self.started[name] = processes.Leader(command, environment | self.variables, self.place / f"{name}.log")

    def restart(self, name: str) -> None:
        processes.stop(self.started[name])
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

    def text(self, path: str, token: str | None = None, accept: str = "*/*") -> tuple[int, str, str]:
        """Returns status, address after all redirects, and text of what a browser would get."""
        headers = {"accept": accept} | ({"authorization": f"Bearer {token}"} if token else {})
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, None, headers), timeout=60) as answer:
                return answer.status, answer.url, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.url, refusal.read().decode()

    def token(self, user: str, password: str) -> str:
        status, answer = self("/auth/token", {"username": user, "password": password})
        assert status == 201
        return str(answer["access_token"])

    def plan(self, *experiments: str) -> None:
        """Writes the benchmark file."""
        file = write_config(self.place / "benchmarks" / "pair.yaml", list(experiments))
        file.write_text(file.read_text() + CELL.format(url=self.backend.url))

    @property
    def store(self) -> Store:
        return Store(self.artifacts)

    @property
    def run(self) -> Path:
        """The records of the run."""
        return self.store.run("pair-pair-1")

    def page(self) -> str:
        return (self.run / "index.html").read_text()

    def secret(self, name: str) -> str:
        return (self.place / "secrets" / name).read_text()

    def secrets(self) -> set[str]:
        """Passwords, keys and tokens, none of which may be seen anywhere."""
        texts = {file.name: file.read_text() for file in (self.place / "secrets").iterdir()}
        connection = yaml.safe_load(texts.pop("connections.yaml"))["streamgauge_spark"]
        return {*texts.values(), connection["password"], self.variables["AWS_SECRET_ACCESS_KEY"]}


def run(script: str, folder: Path, **variables: str) -> None:
    """Runs the commands in a shell as a person has it, ended by the first failure."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", **variables}
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def served(place: Path, there: str, variables: dict[str, str], backend: Backend) -> Iterator[Service]:
    """Yields the service, started by the documented commands."""
    database, port, logs, health = (free_port() for _ in range(4))
    for folder in ("benchmarks", "conf", "events", "secrets"):
        (place / folder).mkdir()
    (place / "benchmarks" / "broken.yaml").write_text("name: [")
    (place / "conf" / "spark-defaults.conf").write_text(
        f"spark.eventLog.enabled true\nspark.eventLog.dir file:{place}/events\n"
        "spark.streamgauge.historyServer http://history.example.org:18080\n"
    )
    (place / "secrets" / "reader_password").write_text(READER)
    (place / "service.env").write_text(
        f"STREAMGAUGE_HOME={ROOT}\nSECRETS={place}/secrets\nAIRFLOW_HOME={place}/airflow\n"
        f"AIRFLOW_URL=http://127.0.0.1:{port}\nAIRFLOW_INSIDE=http://127.0.0.1:{port}\n"
        f"STREAMGAUGE_ARTIFACTS={there}\nSTREAMGAUGE_CONFIGS={place}/benchmarks\n"
        f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}\n"
        f"SPARK_CONF_DIR={place}/conf\nSTREAMGAUGE_LOCKS={place}\n"
        f"AIRFLOW__API__HOST=127.0.0.1\nAIRFLOW__API__PORT={port}\nAIRFLOW__API__WORKERS=1\n"
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
        url = f"http://127.0.0.1:{port}"
        found = Service(place, url, database, server, programs, there, variables, backend)
        found.plan(LATE, IMPOSSIBLE)
        try:
            for line in documented("services").splitlines():
                found.start(line.split()[-1])
            wait_for(lambda: healthy(found), "healthy Airflow", 240)
            yield found
        finally:
            processes.stop(*found.started.values())


def healthy(service: Service) -> bool:
    try:
        status, health = service("/api/v2/monitor/health")
    except (OSError, HTTPException):
        return False
    parts = ("metadatabase", "scheduler", "dag_processor")
    return status == 200 and all(health[part]["status"] == "healthy" for part in parts)
