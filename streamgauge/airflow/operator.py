"""One stage as an Airflow task: a spark-submit job that fails with one line and leaves no process when it is killed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psutil
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from streamgauge.airflow.submission import settings
from streamgauge.base.errors import UserError
from streamgauge.spark.session import check_master

CONNECTION = "streamgauge_spark"
#: what a job prints for a user's mistake, see streamgauge/spark/job.py
_USER_ERROR = re.compile(r"^streamgauge \w+: .+$", re.MULTILINE)


class StageOperator(SparkSubmitOperator):
    """Runs the job of one stage through spark-submit.

    scope: {"experiment": name, …}, passed to the job as arguments of these names and added to Spark's app name.
    python: the jobs' interpreter on this host. stays: the stage runs on this host in any case.
    """

    name: str
    application_args: list[str]
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "scope")

    def __init__(self, *, scope: dict[str, Any], python: str, stays: bool, **kwargs: Any) -> None:
        # not durable: spark-submit waits for the end of its application, in deploy mode cluster too
        super().__init__(conn_id=CONNECTION, durable=False, **kwargs)
        self.scope, self._python, self._stays = scope, python, stays

    def execute(self, context: Any) -> None:
        """Runs the job. Raises AirflowFailException (no retry) with the job's own line for a user's mistake."""
        self.submit_as_connected()
        try:
            super().execute(context)
        except AirflowException as problem:
            if line := _USER_ERROR.search(str(problem)):
                raise AirflowFailException(line[0]) from None
            raise

    def on_kill(self) -> None:
        """Ends the Python processes below spark-submit too: killing the JVM alone leaves them behind."""
        below = psutil.Process().children(recursive=True)
        super().on_kill()
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def submit_as_connected(self) -> None:
        """Sets spark-submit's parameters from the connection. Raises AirflowFailException for a wrong one."""
        self.name = " ".join([self.name, *self.scope.values()])
        arguments = [*self.application_args, *(f"--{key}={value}" for key, value in self.scope.items())]
        master, extra = self._connected()
        try:
            told = settings(master, extra, arguments, python=self._python, stays=self._stays)
        except UserError as problem:
            raise AirflowFailException(str(problem)) from None
        self.conf = told["conf"]
        self.env_vars, self.application_args = told["env_vars"], told["application_args"]
        self._deploy_mode, self._archives, self.files = told["deploy_mode"], told["archives"], told.get("files")

    def _connected(self) -> tuple[str, dict[str, Any]]:
        """Master and extra of the connection. Raises AirflowFailException if it is missing or cannot be used.

        Without this, a missing connection would silently mean master yarn, and an unreachable master a long wait.
        """
        try:
            connection = BaseHook.get_connection(CONNECTION)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"no connection {CONNECTION!r}; add it in Airflow (type Spark, host local[2] or spark://host:7077)"
            ) from None
        host, port = str(connection.host), f":{connection.port}" if connection.port else ""
        master = host if "://" in host or not port else f"{connection.conn_type}://{host}"
        try:
            check_master(master + port)
        except UserError as problem:
            raise AirflowFailException(str(problem)) from None
        if master.startswith("k8s://") and getattr(spark_submit, "kube_client", None) is None:
            raise AirflowFailException(
                f"{master}: Airflow's environment has no apache-airflow-providers-cncf-kubernetes; install it there"
            )
        return master + port, connection.extra_dejson
