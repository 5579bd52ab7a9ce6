"""One stage as an Airflow task: a spark-submit job that fails with one line and dies as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import psutil
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from streamgauge.spark.session import check_master

CONNECTION = "streamgauge_spark"
#: what a job prints for a user's mistake, see streamgauge/spark/job.py
_USER_ERROR = re.compile(r"^streamgauge \w+: .+$", re.MULTILINE)


class StageOperator(SparkSubmitOperator):
    """scope: {"experiment": name, …}, given to the job as arguments of these names, and part of Spark's app name."""

    name: str
    application_args: list[str]
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "scope")

    def __init__(self, *, scope: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(conn_id=CONNECTION, **kwargs)
        self.scope = scope

    def execute(self, context: Any) -> None:
        """Raises AirflowFailException (no retry) with the job's own line for a user's mistake."""
        self._check_master()
        self.name = " ".join([self.name, *self.scope.values()])
        self.application_args = [*self.application_args, *(f"--{key}={value}" for key, value in self.scope.items())]
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

    def _check_master(self) -> None:
        """A missing connection would silently mean master yarn, an unreachable one a long wait."""
        try:
            connection = BaseHook.get_connection(CONNECTION)
        except AirflowNotFoundException:
            raise AirflowFailException(
                f"no connection {CONNECTION!r}; add it in Airflow (type Spark, host local[2] or spark://host:7077)"
            ) from None
        host, port = str(connection.host), f":{connection.port}" if connection.port else ""
        master = host if "://" in host or not port else f"{connection.conn_type}://{host}"
        check_master(master + port)
