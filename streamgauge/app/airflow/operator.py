"""An operator that runs a stage by spark-submit, fails with one line, and leaves no process when it is killed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import BaseHook, BaseOperator, BaseOperatorLink
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
    AirflowTaskTimeout,
)

from streamgauge.app.airflow import run_names
from streamgauge.app.airflow.submission import settings
from streamgauge.base.errors import Outage, UserError
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.claims import claimed
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.run_summary import search_of
from streamgauge.catalog.stages import Stage
from streamgauge.config import Cell
from streamgauge.streams.stages.session import check_master

CONNECTION = "streamgauge_spark"
#: facts that an asset's event has: of what the job has recorded of its end, of a manifest, and of a search
_OF_OUTCOME = ("key", "reused", "page", "verdict")
_OF_MANIFEST = ("events", "sha256", "target_out_of_order", "achieved_out_of_order")
_OF_SEARCH = ("sustainable_rate_events_per_s", "interval", "constraint", "proven", "correct", "claim")


class PageLink(BaseOperatorLink):
    """The button on a task that leads to the page of its run, which Airflow's web server has (plugin.py)."""

    name = "Page of the run"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ARG002 (Airflow passes it by name)
        base = str(conf.get("api", "base_url", fallback="/")).rstrip("/")
        return f"{base}{run_names.PREFIX}/{run_names.page(ti_key.dag_id, ti_key.run_id)}"


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
            last = log.latest(self.stage.name, **self.scope)
            ended = last if last and last.attempt not in before else None
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
        try:
            master, extra = self._connection()
            given = settings(master, extra, arguments, python=self.python, stays=self.stage.stays)
        except UserError as problem:
            raise AirflowFailException(str(problem)) from None
        self._private = Path(given["properties_file"]) if "properties_file" in given else None
        name = " ".join(["streamgauge", self.stage.name, *self.scope.values()])
        return SparkSubmitHook(conn_id=CONNECTION, name=name, **given)

    def _connection(self) -> tuple[str, dict[str, Any]]:
        """Master and extra of the connection. Raises UserError if it is missing or cannot be used.

        Without this, a missing connection would silently mean master yarn, and an unreachable master a long wait.
        """
        try:
            connection = BaseHook.get_connection(CONNECTION)
        except AirflowNotFoundException:
            raise UserError(
                f"no connection {CONNECTION!r}; add it in Airflow (type Spark, host local[2] or spark://host:7077)"
            ) from None
        host, port = str(connection.host), f":{connection.port}" if connection.port else ""
        master = host if "://" in host or not port else f"{connection.conn_type}://{host}"
        check_master(master + port)
        if master.startswith("k8s://") and getattr(spark_submit, "kube_client", None) is None:
            raise UserError(
                f"{master}: Airflow's environment has no apache-airflow-providers-cncf-kubernetes; install it there"
            )
        return master + port, connection.extra_dejson


def facts(store: Store, log: RunLog, stage: Stage, scope: dict[str, str]) -> dict[str, Any]:
    """Returns facts of what the stage has made in its last attempt in this run; unknown ones are left out."""
    record = log.latest(stage.name, **scope)
    known: dict[str, Any] = {"run": log.path.name, **scope}
    outcome = record.outcome if record else {}
    known |= _some(outcome, _OF_OUTCOME)
    if outcome.get("key"):
        artifact = store.find(outcome["artifact"], outcome["key"])
        known |= _some(artifact.manifest if artifact else {}, _OF_MANIFEST)
    if stage.name == "search":
        known |= _some(search_of(log.path / "cells" / Cell(**scope).name).to_json(), _OF_SEARCH)
    return known


def _some(record: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}
