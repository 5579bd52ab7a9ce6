"""An operator that runs a stage by spark-submit, fails with one line, and leaves no process when it is killed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, BaseOperator
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from streamgauge.app.airflow.asset_facts import facts
from streamgauge.app.airflow.page_link import PageLink
from streamgauge.app.airflow.submission import settings
from streamgauge.base.errors import Outage, UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import Stage
from streamgauge.streams.stages.session import check_master

CONNECTION = "streamgauge_spark"


class StageOperator(BaseOperator):
    """Runs the job of one stage through spark-submit, as the connection says, and waits for its end.

    scope: {"experiment": name, …}, passed to the job as arguments of these names and added to Spark's app name.
    artifacts, run: where the job records how it ended. config: the benchmark file. overrides: JSON for the job.
    python: the jobs' interpreter on this host. Only what is written here is a template: names of files are text.
    """

    template_fields: Sequence[str] = ("run", "overrides", "scope")
    operator_extra_links = (PageLink(),)

    def __init__(
        self, *, stage: Stage, application: str, artifacts: str, run: str, config: str,
        overrides: str, scope: dict[str, Any], python: str, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.stage, self.application, self.artifacts, self.run = stage, application, artifacts, run
        self.config, self.overrides, self.scope, self.python = config, overrides, scope, python
        self.hook: SparkSubmitHook | None = None
        self._private: Path | None = None

    def execute(self, context: Any) -> None:
        """Runs the job, then adds what it made to the events of the task's assets.

        Raises AirflowFailException (no retry) for a user's mistake, with what the job recorded.
        """
        log = RunLog(Store(self.artifacts).run(self.run))
        try:
            with claimed(log.path, shared=True):
                self._submit(log)
        except UserError as problem:  # a command works on this run
            raise AirflowFailException(str(problem)) from None
        known = facts(Store(self.artifacts), log, self.stage, self.scope)
        for asset in self.outlets:
            context["outlet_events"][asset].extra.update(known)

    def _submit(self, log: RunLog) -> None:
        before = {record.attempt for record in log.stages()}
        try:
            self.hook = self.connected()
            self.hook.submit(self.application)
        except AirflowTaskTimeout:
            limit = self.execution_timeout.total_seconds() if self.execution_timeout else 0.0
            why = f"took longer than {limit:,.0f} s, which counts as hung (timeouts in the benchmark file)"
            started = log.latest(self.stage.name, **self.scope)
            attempt = started.attempt if started and started.attempt not in before else None
            log.failed(self.stage.name, self.scope, Outage(why), attempt)
            raise
        except AirflowException as problem:
            attempts = [record for record in log.stages() if record.attempt not in before]
            mine = [one for one in attempts if (one.stage, one.scope) == (self.stage.name, self.scope)]
            ended = mine[-1] if mine else None
            if ended is None or ended.state == "started":  # it never began, or was killed: it could not record that
                last_line = str(problem).strip().splitlines()[-1]
                reason: Exception
                if isinstance(problem, AirflowFailException):
                    reason = UserError(last_line)
                elif ended is None:
                    reason = RuntimeError(last_line)
                else:
                    reason = Outage(f"its process was killed, or died; the last line that it logged: {last_line}")
                log.failed(self.stage.name, self.scope, reason, ended.attempt if ended else None)
            elif ended.state == "skipped":
                raise AirflowSkipException(f"streamgauge {self.stage.name}: {ended.error}") from None
            elif ended.cause == "mistake":
                raise AirflowFailException(f"streamgauge {self.stage.name}: {ended.error}") from None
            raise
        finally:
            if self._private is not None:  # a task's process ends without what it has registered for its end
                self._private.unlink(missing_ok=True)

    def on_kill(self) -> None:
        """Ends the Python processes below spark-submit too: killing the JVM alone leaves them behind."""
        below = psutil.Process().children(recursive=True)
        if self.hook is not None:
            self.hook.on_kill()
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def connected(self) -> SparkSubmitHook:
        """Returns the provider's hook, set up from the connection. Raises AirflowFailException for a wrong one."""
        about_run = ["--artifacts", self.artifacts, "--run-id", self.run, "--config", self.config]
        arguments = [*about_run, "--overrides", self.overrides, *self.stage.arguments(self.scope)]
        master, extra = self._connection()
        try:
            given = settings(master, extra, arguments, python=self.python, stays=self.stage.stays)
        except UserError as problem:
            raise AirflowFailException(str(problem)) from None
        self._private = Path(given["properties_file"]) if "properties_file" in given else None
        name = " ".join(["streamgauge", self.stage.name, *self.scope.values()])
        return SparkSubmitHook(conn_id=CONNECTION, name=name, **given)

    def _connection(self) -> tuple[str, dict[str, Any]]:
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
