"""Derives spark-submit's settings for a cluster from the Airflow connection alone.

The connection's host is the master. Its extra (JSON) may hold `deploy-mode` (client or cluster), `environment` (an
archive of Python and the jobs' packages, see docs/clusters.md), `python` (the interpreter where executors have one
installed), `conf` (further Spark settings), and the provider's own `queue` and `namespace`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.base.places import ENVIRONMENT
from streamgauge.streams.stages import session
from streamgauge.streams.stages.private_conf import parted, written

_WHERE = "connection streamgauge_spark, extra"
_UPLOAD = "spark.kubernetes.file.upload.path"


def settings(
    master: str, extra: Mapping[str, Any], arguments: Sequence[str], *, python: str, stays: bool
) -> dict[str, Any]:
    """Parameters of SparkSubmitHook beyond the connection and the name.

    stays: the stage and its Spark run on this host, hence in deploy mode client and with this host's `python`,
    whatever the extra says. Raises UserError for an extra that is wrong or does not fit the master.
    """
    mode = extra.get("deploy-mode") or "client"
    if not isinstance(extra.get("conf") or {}, Mapping):
        raise UserError(f"{_WHERE}: conf: found {extra['conf']!r}, allowed: an object of Spark's settings")
    conf, hidden = parted({str(key): str(value) for key, value in (extra.get("conf") or {}).items()}, f"{_WHERE}: conf")
    _check(master, mode, extra, {**conf, **hidden})
    cluster = mode == "cluster" and not stays
    archive = None
    theirs = python if stays else extra.get("python") or python
    if extra.get("environment") and not stays and not master.startswith("local"):
        archive = f"{extra['environment']}#environment"
        theirs = "./environment/bin/python"
    pythons = {"spark.pyspark.python": theirs, "spark.pyspark.driver.python": theirs if cluster else python}
    options = session.BATCH_JVM if cluster else session.driver_options()
    base = {"spark.ui.enabled": "false", "spark.driver.extraJavaOptions": options}
    parameters: dict[str, Any] = {
        "conf": {**base, **pythons, **conf},
        "deploy_mode": "cluster" if cluster else "client",
        "env_vars": {"PYSPARK_PYTHON": theirs, "PYSPARK_DRIVER_PYTHON": python},
        "application_args": list(arguments),
    }
    if cluster:
        at = parameters["application_args"].index("--config") + 1
        file = parameters["application_args"][at]
        parameters["application_args"][at] = Path(file).name
        parameters["files"] = file
        parameters["env_vars"] = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if hidden:
        private = Path(tempfile.mkdtemp(prefix="streamgauge-"))  # only we can write there; it goes with this process
        atexit.register(shutil.rmtree, private, ignore_errors=True)
        parameters["properties_file"] = str(written(hidden, private))
    return parameters | {"archives": archive}


def _check(master: str, mode: str, extra: Mapping[str, Any], conf: Mapping[str, str]) -> None:
    if mode not in ("client", "cluster"):
        raise UserError(f"{_WHERE}: deploy-mode: found {mode!r}, allowed: client, cluster")
    if mode == "client":
        return
    if master.startswith(("spark://", "local")):
        raise UserError(
            f"{_WHERE}: deploy-mode: found 'cluster', allowed for {master}: client, since this master takes no Python "
            "application; cluster is for yarn and k8s://"
        )
    if not (extra.get("environment") or extra.get("python")):
        raise UserError(f"{_WHERE}: environment: found none, needed in deploy mode cluster; see docs/clusters.md")
    if master.startswith("k8s://") and _UPLOAD not in conf:
        raise UserError(f"{_WHERE}: conf: found no {_UPLOAD}, by which Spark hands files to the driver's pod")
