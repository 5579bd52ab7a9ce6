"""The spark-submit of each kind of cluster, as the provider makes it of the Airflow connection; none is run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = "hdfs:///envs/environment.tar.gz"
IN_A_POD = {"spark.kubernetes.container.image": "spark:4.3.0", "spark.kubernetes.file.upload.path": "s3a://b/up"}
CASES: dict[str, dict[str, Any]] = {
    "local": {"conn_type": "spark", "host": "local[2]"},
    "local, packed": {"conn_type": "spark", "host": "local[2]", "extra": {"environment": "/envs/e.tar.gz"}},
    "yarn, client": {"conn_type": "spark", "host": "yarn", "extra": {"environment": ENVIRONMENT, "queue": "nightly"}},
    "yarn, cluster": {
        "conn_type": "spark", "host": "yarn",
        "extra": {"deploy-mode": "cluster", "environment": ENVIRONMENT, "conf": {"spark.executor.instances": 4}},
    },
    "k8s, client": {
        "conn_type": "spark", "host": "k8s://https://api:6443",
        "extra": {"namespace": "bench", "python": "/opt/venv/bin/python", "conf": {"spark.driver.host": "airflow"}},
    },
    "k8s, cluster": {
        "conn_type": "spark", "host": "k8s://https://api:6443",
        "extra": {"deploy-mode": "cluster", "namespace": "bench", "environment": "s3a://b/e.tar.gz", "conf": IN_A_POD},
    },
    "staying, cluster": {
        "conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster", "environment": ENVIRONMENT},
    },
    "staying, python": {"conn_type": "spark", "host": "yarn", "extra": {"python": "/opt/venv/bin/python"}},
    "standalone, cluster": {
        "conn_type": "spark", "host": "spark://127.0.0.1:7077", "extra": {"deploy-mode": "cluster"},
    },
    "local, cluster": {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "cluster"}},
    "bare, cluster": {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}},
    "no upload, cluster": {
        "conn_type": "spark", "host": "k8s://https://api:6443",
        "extra": {"deploy-mode": "cluster", "python": "python3"},
    },
    "text for conf": {"conn_type": "spark", "host": "yarn", "extra": {"conf": "spark.executor.memory=2g"}},
    "mistyped": {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "remote"}},
}  # fmt: skip
SUBMIT = """
import json, os, sys
from dataclasses import replace
from airflow.providers.apache.spark.hooks import spark_submit
from streamgauge.app.airflow import operator
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.stages import BY_NAME
from airflow.sdk.exceptions import AirflowFailException

operator.check_master = lambda master: None  # nobody listens there

def made(artifacts, **changes):
    return operator.StageOperator(
        task_id="generate", stage=replace(BY_NAME["generate"], **changes),
        application="/clone/jobs/generate.py", scope={"experiment": "late"}, python="/venv/bin/python",
        artifacts=artifacts, run="tiny-1", config="/configs/tiny.yaml", overrides="{}",
    )

def submitted(name, connection):
    os.environ["AIRFLOW_CONN_STREAMGAUGE_SPARK"] = json.dumps(connection)
    # its command does not need the Kubernetes client, which only follows drivers
    spark_submit.kube_client = None if name.startswith("unarmed") else object()
    task = made("s3://bench/nightly", records=name.startswith("staying"))
    try:
        return task.connected()._build_spark_submit_command(task.application)
    except AirflowFailException as problem:
        return str(problem)

def rendered():
    from airflow.sdk import DAG, task
    from airflow.sdk.definitions.template import literal

    from streamgauge.app.airflow import benchmarks, factory
    from pathlib import Path

    benchmark = next(iter(benchmarks.load_all([Path("configs/flights.yaml")])[0].values()))
    search = benchmark.search.model_copy(update={"in_turns": False})  # with a task that lists the cells
    benchmark = benchmark.model_copy(update={"search": search})
    hostile = Path("/c/{{ 7*7 }}/{% raw %}.yaml")
    factory.ARTIFACTS = Path("/a/{{ 7*7 }}")
    dag = factory.build(benchmark, hostile, nightly=True)
    context = {"params": {"seed": 7}, "run_id": "manual__1"}
    found = {}
    for one in dag.tasks:
        if one.task_id in ("ingest", "plan", "cells", "notify", "finish"):
            one.render_template_fields(context, one.dag.get_template_env())
            names = ("artifacts", "config", "run", "overrides") if one.task_id == "ingest" else ("op_args",)
            found[one.task_id] = [getattr(one, name) for name in names]
    return found

def beside_a_command(artifacts):
    with claimed(Store(artifacts).run("tiny-1")):
        try:
            made(artifacts).execute({})
        except AirflowFailException as problem:
            return str(problem)

def wrong_answers(artifacts):
    from pathlib import Path
    from streamgauge.app.airflow import factory
    from tests import example_run

    benchmark, store = example_run.benchmark(Path(artifacts, "f.csv"), **example_run.CELLS), Store(artifacts)
    example_run.record_cells(example_run.record_example(store, benchmark))
    factory.ARTIFACTS, factory._chosen = store.root, lambda *_: benchmark
    try:
        factory.require_right("b.yaml", example_run.RUN, {})
    except AirflowFailException as problem:
        return str(problem)

cases = json.loads(sys.argv[1])
told = {name: submitted(name, connection) for name, connection in cases.items()}
print("RENDERED" + json.dumps(rendered()))
print("SUBMITTED" + json.dumps(told | {
    "beside a command": beside_a_command(os.environ["TMPDIR"]), "wrong answers": wrong_answers(os.environ["TMPDIR"]),
}))
"""


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AIRFLOW", "STREAMGAUGE", "AWS_"))}
    environment = kept | {
        "AIRFLOW_HOME": str(tmp_path_factory.mktemp("home")),
        "AWS_ENDPOINT_URL": "https://s3.example.org",
        "AWS_SECRET_ACCESS_KEY": "never on a command line",
        "TMPDIR": str(tmp_path_factory.mktemp("tmp")),
    }
    cases = CASES | {"unarmed k8s": CASES["k8s, client"]}
    done = subprocess.run(
        [sys.executable, "-c", SUBMIT, json.dumps(cases)],
        env=environment, capture_output=True, text=True, timeout=120, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "never on a command line" not in done.stdout
    told = done.stdout.rpartition("SUBMITTED")
    return json.loads(told[2]) | {"rendered": json.loads(told[0].rpartition("RENDERED")[2].splitlines()[0])}


def test_the_names_of_files_are_text_and_no_templates(submitted: Any) -> None:
    file = "/c/{{ 7*7 }}/{% raw %}.yaml"
    run = "flights-nightly-manual__1"
    assert submitted["rendered"] == {
        "ingest": ["/a/{{ 7*7 }}", file, run, '{"seed": 7}'],
        "plan": [[file, "experiment"]],
        "notify": [[file, run]],
        "cells": [[file, "cell"]],
        "finish": [[file, run]],
    }  # fmt: skip


def test_a_run_whose_answers_were_wrong_fails_its_last_task_with_the_cells(submitted: Any) -> None:
    said = "late20.sum.hdfs: answers were wrong in latency (100\u202f%)"
    assert submitted["wrong answers"] == said


def parsed(command: list[str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Options, settings, and the application with its arguments."""
    assert command[0] == "spark-submit"
    at = command.index("/clone/jobs/generate.py")
    pairs = list(zip(command[1:at:2], command[2:at:2], strict=True))
    conf = dict(value.split("=", 1) for option, value in pairs if option == "--conf")
    return {option: value for option, value in pairs if option != "--conf"}, conf, command[at:]


HERE = [
    "/clone/jobs/generate.py", "--artifacts", "s3://bench/nightly", "--run-id", "tiny-1",
    "--config", "/configs/tiny.yaml", "--overrides", "{}", "--experiment=late",
]  # fmt: skip
THERE = [argument.removeprefix("/configs/") for argument in HERE]
PACKED = "./environment/bin/python"


@pytest.mark.parametrize(
    ("case", "options", "python", "driver_python"),
    [
        ("local", {"--master": "local[2]"}, "/venv/bin/python", "/venv/bin/python"),
        ("local, packed", {"--master": "local[2]"}, "/venv/bin/python", "/venv/bin/python"),
        (
            "yarn, client",
            {"--master": "yarn", "--archives": f"{ENVIRONMENT}#environment", "--queue": "nightly"},
            PACKED,
            "/venv/bin/python",
        ),
        ("k8s, client", {"--master": "k8s://https://api:6443"}, "/opt/venv/bin/python", "/venv/bin/python"),
        ("staying, cluster", {"--master": "yarn"}, "/venv/bin/python", "/venv/bin/python"),
        ("staying, python", {"--master": "yarn"}, "/venv/bin/python", "/venv/bin/python"),
    ],
)
def test_in_deploy_mode_client_the_driver_is_here_and_only_executors_elsewhere_get_the_packed_python(
    submitted: Any, case: str, options: dict[str, str], python: str, driver_python: str
) -> None:
    told, conf, application = parsed(submitted[case])
    assert told == {"--name": "streamgauge generate late", "--deploy-mode": "client", **options}
    assert (conf["spark.pyspark.python"], conf["spark.pyspark.driver.python"]) == (python, driver_python)
    assert application == HERE


@pytest.mark.parametrize(
    ("case", "master", "environment"),
    [("yarn, cluster", "yarn", ENVIRONMENT), ("k8s, cluster", "k8s://https://api:6443", "s3a://b/e.tar.gz")],
)
def test_in_deploy_mode_cluster_all_that_the_driver_reads_travels_with_it(
    submitted: Any, case: str, master: str, environment: str
) -> None:
    told, conf, application = parsed(submitted[case])
    archives = told.pop("--archives").split(",")
    assert told == {
        "--name": "streamgauge generate late",
        "--deploy-mode": "cluster",
        "--master": master,
        "--files": "/configs/tiny.yaml",
    }
    assert archives == [f"{environment}#environment"]
    assert (conf["spark.pyspark.python"], conf["spark.pyspark.driver.python"]) == (PACKED, PACKED)
    assert "log4j2.configurationFile" not in conf["spark.driver.extraJavaOptions"], "a file of this host"
    where = "spark.yarn.appMasterEnv" if master == "yarn" else "spark.kubernetes.driverEnv"
    assert {k: v for k, v in conf.items() if k.startswith(where)} == {
        f"{where}.AWS_ENDPOINT_URL": "https://s3.example.org"
    }
    assert application == THERE


def test_the_connections_own_settings_are_passed_on(submitted: Any) -> None:
    assert parsed(submitted["yarn, cluster"])[1]["spark.executor.instances"] == "4"
    there = parsed(submitted["k8s, cluster"])[1]
    assert there.items() >= {**IN_A_POD, "spark.kubernetes.namespace": "bench"}.items()
    assert parsed(submitted["k8s, client"])[1]["spark.driver.host"] == "airflow"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("standalone, cluster", "deploy-mode: found 'cluster', allowed for spark://127.0.0.1:7077: client, since this "
                                "master takes no Python application; cluster is for yarn and k8s://"),
        ("local, cluster", "deploy-mode: found 'cluster', allowed for local[2]: client, since this master takes no "
                           "Python application; cluster is for yarn and k8s://"),
        ("bare, cluster", "environment: found none, needed in deploy mode cluster; see docs/clusters.md"),
        ("no upload, cluster", "conf: found no spark.kubernetes.file.upload.path, by which Spark hands files to the "
                               "driver's pod"),
        ("text for conf", "conf: found 'spark.executor.memory=2g', allowed: an object of Spark's settings"),
        ("mistyped", "deploy-mode: found 'remote', allowed: client, cluster"),
    ],
)  # fmt: skip
def test_a_connection_that_cannot_work_is_told_in_one_line(submitted: Any, case: str, said: str) -> None:
    assert submitted[case] == f"connection streamgauge_spark, extra: {said}"


def test_without_the_kubernetes_provider_that_is_what_is_told(submitted: Any) -> None:
    assert "has no apache-airflow-providers-cncf-kubernetes; install it there" in submitted["unarmed k8s"]


def test_a_stage_of_a_run_on_which_a_command_works_is_refused_at_once(submitted: Any) -> None:
    assert re.fullmatch(r"run tiny-1: process \d+ on host \S+ has worked on it since .*", submitted["beside a command"])
