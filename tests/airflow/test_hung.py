"""A stage's job that is killed, and one that hangs: real spark-submits under Airflow's own limit.

A whole night of both: test_airflow.py. The job leaves a file with its process id.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
from tests.e2e.processes import alive

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]
JOB = """
import os, signal, sys, time
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_log import RunLog
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
with RunLog(Store(given["--artifacts"]).run(given["--run-id"])).stage("generate", {"experiment": "late"}):
    open(os.environ["PROCESS"], "w").write(str(os.getpid()))
    if os.environ["FAULT"] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
"""
#: what Airflow's runner of tasks does around a task with a limit
EXECUTE = """
import sys
from datetime import timedelta
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout
from airflow.sdk.execution_time.timeout import timeout
from streamgauge.app.airflow.operator import StageOperator
from streamgauge.catalog.stages import BY_NAME

job, artifacts, limit = sys.argv[1], sys.argv[2], float(sys.argv[3])
task = StageOperator(
    task_id="generate", stage=BY_NAME["generate"], application=job, scope={"experiment": "late"},
    python=sys.executable, artifacts=artifacts, run="r", config="b.yaml", overrides="{}",
    execution_timeout=timedelta(seconds=limit),
)
try:
    with timeout(limit):
        task.execute({})
except AirflowTaskTimeout:
    task.on_kill()
    print("hung")
except AirflowException:
    print("failed")
"""


@pytest.mark.parametrize(
    ("fault", "limit_s", "ended", "said"),
    [
        ("hangs", 20, "hung", "Outage: took longer than 20 s, which counts as hung (timeouts in the benchmark file)"),
        ("killed", 150, "failed", "Outage: its process was killed, or died; the last line that it logged: "),
    ],
)
def test_the_run_says_why_a_stage_has_not_ended_and_its_process_is_gone(
    tmp_path: Path, fault: str, limit_s: float, ended: str, said: str
) -> None:
    job, process, artifacts = tmp_path / "job.py", tmp_path / "process", tmp_path / "artifacts"
    job.write_text(JOB)
    connection = {"conn_type": "spark", "host": "local[1]"}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW")} | {
        "AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW_CONN_STREAMGAUGE_SPARK": json.dumps(connection),
        "PROCESS": str(process), "FAULT": fault, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }  # fmt: skip
    command = [sys.executable, "-c", EXECUTE, str(job), str(artifacts), str(limit_s)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == [ended], done.stderr[-2000:]
    [attempt] = RunLog(Store(artifacts).run("r")).stages()
    assert (attempt.stage, attempt.state, attempt.cause) == ("generate", "failed", "outage")
    assert str(attempt.error).startswith(said)
    assert not psutil.pid_exists(pid := int(process.read_text())) or not alive(psutil.Process(pid))
