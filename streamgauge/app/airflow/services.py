"""`make ui`: runs Airflow's services with the web page, and stops all of their processes at the end."""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path

from streamgauge.app.airflow import benchmarks, home
from streamgauge.app.airflow.run_names import PREFIX
from streamgauge.base import processes
from streamgauge.base.errors import UserError
from streamgauge.base.live import Live, tell, took
from streamgauge.base.places import here
from streamgauge.bench.driver.ports import free_port
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed_folder
from streamgauge.streams.stages.session import check_master

SERVICES = (["api-server", "--workers", "1"], ["scheduler"], ["dag-processor"])
START_SECONDS = 240.0
USER = "admin"


def ui(configs: Path, artifacts: Path, *, port: int, master: str | None) -> int:
    """Serves Airflow on 127.0.0.1 until Ctrl-C or SIGTERM; port 0 takes a free one.

    Raises UserError when the port is taken, another process serves these artifacts or a service ends by itself; stops
    all of them in any case.
    """
    store = Store(artifacts)
    if not (files := benchmarks.files_in(Path(configs))):
        raise UserError(f"{configs}: found no benchmark file (.yaml, .yml or .json); name the folder that has them")
    for problem in benchmarks.load_all(files)[1]:
        tell(f"left out: {problem}")
    if master:
        check_master(master)
    base = here(store.root) / "airflow" / "ui"
    with claimed_folder(base, f"Airflow of {store.root}", "choose another --artifacts"):
        port = free_port(port)
        environment = home.environment(base, store.root, Path(configs).absolute(), master) | _settings(base, port)
        environment.pop("STREAMGAUGE_RUN_ID", None)
        return _served(environment, base, port)


def _settings(base: Path, port: int) -> dict[str, str]:
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(base / "passwords.json"),
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port(0)),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",  # reading them takes CPU from measurements
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",  # a dead scheduler's tasks soon go on
    }


def _served(environment: dict[str, str], base: Path, port: int) -> int:
    """Runs the services until Ctrl-C or SIGTERM, then stops them."""
    started: list[processes.Leader] = []
    with processes.stoppable():
        try:
            tell("starting Airflow")
            began = time.monotonic()
            with Live(lambda: f"starting Airflow, {took(time.monotonic() - began)}; often 30 s", sys.stdout, 5.0):
                home.prepare(environment)
                for service in SERVICES:
                    log = base / f"{service[0]}.log"
                    started.append(processes.Leader([*home.AIRFLOW, *service], environment, log))
                _await_health(port, started, base)
            password = json.loads((base / "passwords.json").read_text())[USER]
            tell(f"http://127.0.0.1:{port}  user {USER}  password {password}")
            tell(f"pages of runs: http://127.0.0.1:{port}{PREFIX}/")
            tell(f"logs in {base}; Ctrl-C stops everything")
            while True:
                _check_alive(started, base)
                time.sleep(0.5)
        except KeyboardInterrupt:
            tell("stopping Airflow")
            return 0
        finally:
            processes.stop(*started)


def _await_health(port: int, started: list[processes.Leader], base: Path) -> None:
    """Waits until the page answers and scheduler and DAG processor are healthy. Raises UserError if that takes long."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        _check_alive(started, base)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=5) as answer:
                health = json.load(answer)
            if all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise UserError(f"Airflow was not ready after {START_SECONDS:.0f} s; see the logs in {base}")


def _check_alive(started: list[processes.Leader], base: Path) -> None:
    for service, process in zip(SERVICES, started, strict=True):
        if process.poll() is not None:
            raise UserError(f"airflow {service[0]} exited unexpectedly; see {base / service[0]}.log")
