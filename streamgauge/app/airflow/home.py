"""Sets up a private Airflow inside the artifacts: SQLite, our DAGs, our pool, a connection to Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock

from streamgauge.base.environment import version_of
from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error
from streamgauge.base.shipped import CLONE, INSTALL, shipped

CONNECTION_VARIABLE = "AIRFLOW_CONN_STREAMGAUGE_SPARK"
AIRFLOW = [sys.executable, "-m", "airflow"]
POOL = "streamgauge"
SLOTS = "2"  # stages at a time; each brings a JVM of its own
RETRY_SECONDS = 5.0  # between two attempts at a stage
#: what Airflow's processes import, and how it is installed: the provider names a second PySpark that must stay out
NEEDS = {
    "airflow": INSTALL,
    "pyspark": INSTALL,
    "airflow.providers.apache.spark": "pip install --no-deps 'apache-airflow-providers-apache-spark>=6.3.4,<7'",
}
#: a task that begins before the API server answers asks it again for a minute, and does not lose its only retry
PATIENCE = {
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "12",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "15",
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
}


def artifacts() -> str | Path:
    """Returns where DAGs keep artifacts: as the environment says, else in the clone, else in Airflow's home."""
    airflow = Path(os.environ.get("AIRFLOW_HOME", Path.home() / "airflow"))
    return os.environ.get("STREAMGAUGE_ARTIFACTS") or (CLONE or airflow) / "artifacts"


def environment(home: Path, artifacts: Path, configs: Path, master: str | None) -> dict[str, str]:
    """Environment variables of every Airflow process. The user's own connection is kept unless a master is given.

    Raises UserError for a home that the URL of a database cannot name.
    """
    if "?" in str(home):
        raise UserError(f"{home}: found a ? in the name, which Airflow's database cannot have; choose another folder")
    bin_folder = str(Path(sys.executable).parent)  # holds spark-submit
    ours = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(shipped("dags")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGBAG_IMPORT_ERROR_TRACEBACKS": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "PATH": os.pathsep.join([bin_folder, os.environ.get("PATH", os.defpath)]),
        "PYTHONUNBUFFERED": "1",
        "STREAMGAUGE_ARTIFACTS": str(artifacts),
        "STREAMGAUGE_CONFIGS": str(configs),
        "STREAMGAUGE_SLOTS": os.environ.get("STREAMGAUGE_SLOTS", SLOTS),
    }
    if master or CONNECTION_VARIABLE not in os.environ:
        ours[CONNECTION_VARIABLE] = json.dumps({"conn_type": "spark", "host": master or "local[2]"})
    return PATIENCE | os.environ | ours


def prepare(environment: dict[str, str]) -> None:
    """Makes database and pool, once per Airflow version and number of slots. Raises UserError with the cause."""
    for module, way in NEEDS.items():
        if _is_missing(module):
            raise UserError(f"{module} is not installed in {sys.prefix}; {way}")
    home = Path(environment["AIRFLOW_HOME"])
    slots = environment["STREAMGAUGE_SLOTS"]
    mark = home / f"ready-{version_of('apache-airflow')}-{slots}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        with suppress(PermissionError):  # another user's, who has made it
            home.chmod(0o700)  # Airflow's database, logs and password are for nobody else
        with FileLock(home / "prepare.lock"):
            if mark.exists():
                return
            _make(slots, environment)
            for old in home.glob("ready-*"):
                old.unlink()
            mark.touch()
    except OSError as problem:
        raise as_user_error(problem, home) from None


def _make(slots: str, environment: dict[str, str]) -> None:
    pool = f"pools set {POOL} {slots} 'Spark jobs; a measurement takes every slot'"
    command = [sys.executable, "-m", "streamgauge.app.airflow.commands", "db migrate", pool]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        log = Path(environment["AIRFLOW_HOME"]) / "prepare.log"
        log.write_text(done.stdout + done.stderr)
        raise UserError(f"airflow db migrate or pools set failed; its output is in {log}")


def _is_missing(module: str) -> bool:
    try:
        return find_spec(module) is None
    except ModuleNotFoundError:  # a package above it
        return True
