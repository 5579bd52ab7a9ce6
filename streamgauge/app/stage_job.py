"""The shell that all spark-submit jobs share: arguments, configuration, session, record of the outcome."""

from __future__ import annotations

import argparse
import atexit
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamgauge import config, metrics
from streamgauge.base import printing
from streamgauge.base.errors import Outage, Skipped, UserError
from streamgauge.catalog.artifacts import Artifact, Store
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, Stage, needed_before, stage_of
from streamgauge.metrics.pipeline import Pipeline
from streamgauge.records.manifests import EventsManifest
from streamgauge.records.stages import named
from streamgauge.streams.sources import topics
from streamgauge.streams.stages.tasks import OnSpark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("streamgauge")
#: arguments that distinguish one run of a stage from another
SCOPES = ("experiment", "workload", "system", "baseline", "candidate")
_NOT_DONE = {"failed": "failed", "started": "did not finish", "partly": "is done only in part"}


@dataclass
class Job:
    """Configuration, store and workers of a running job. A job that makes an artifact calls done() with it."""

    benchmark: config.Benchmark
    store: Store
    run_id: str
    args: argparse.Namespace
    run: RunLog
    outcome: dict[str, Any]
    pipeline: Pipeline
    _session: SparkSession | None = None

    @property
    def spark(self) -> SparkSession:
        if self._session is None:
            from streamgauge.streams.stages.session import application, batch_session, end

            # a measuring stage only checks answers: it runs locally, as the cluster's cores belong to the system
            self._session = batch_session(self.args.stage, "local[*]" if stage_of(self.args.stage).measures else None)
            atexit.register(end, self._session)  # the jobs of one process share it
            self.pipeline.attach(self._session)
            self.outcome["spark"] = application(self._session)
        return self._session

    @property
    def workers(self) -> OnSpark:
        return OnSpark(self.spark)

    @property
    def experiment(self) -> config.Experiment:
        return self.benchmark.experiment(self.args.experiment)

    @property
    def cell(self) -> config.Cell:
        return config.Cell(experiment=self.args.experiment, workload=self.args.workload, system=self.args.system)

    def succeeded(self, stage: str, **scope: str) -> bool:
        last = self.run.latest(stage, **scope)
        return last is not None and last.state == "done"

    def require(self, stage: str) -> None:
        """Raises Skipped unless the stage has succeeded in this run for the job's experiment, or for its cell."""
        scope = self.cell.model_dump() if BY_NAME[stage].scope == "cell" else {"experiment": self.args.experiment}
        if not self.succeeded(stage, **scope):
            raise Skipped(f"as {self._stopped_at(BY_NAME[stage], scope)}")

    def _stopped_at(self, stage: Stage, scope: dict[str, str]) -> str:
        """Says which stage, this one or the first that it needs, has not succeeded."""
        for earlier, narrower in needed_before(stage, scope):
            last = self.run.latest(earlier.name, **narrower)
            if last is None or last.state != "done":
                return self._stopped_at(earlier, narrower)
        last = self.run.latest(stage.name, **scope)
        state = _NOT_DONE.get(last.state) if last else None
        return f"{named(stage.name, scope)} {state or 'did not run'}"

    def done(self, artifact: Artifact) -> None:
        log.info("%s %s: %s", artifact.kind, "reused" if artifact.reused else "written", artifact.path)
        if artifact.kind == "events":
            manifest = artifact.read(EventsManifest)
            for warning in (*manifest.doubts, *(f"hint: {hint.text}" for hint in manifest.in_file.hints)):
                log.warning(warning)
        self.outcome |= {"artifact": artifact.kind, "key": artifact.key, "reused": artifact.reused}


@contextmanager
def job(named: str = "") -> Iterator[Job]:
    """Runs one stage: `with job("ingest") as j: j.done(ingest.run(j.workers, j.benchmark, j.store))`.

    named: empty for the job of all measurements, of which the argument --stage names one.
    A UserError becomes one line on standard error and exit code 2; an Outage one line and exit code 3. Every outcome is
    recorded in the run, with its cause: whoever started the job reads it there.
    """
    printing.arrange()
    args = _arguments(named)
    stage = str(args.stage)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    for noisy in ("py4j", "great_expectations"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    try:
        store = Store(args.artifacts)
        run = RunLog(store.run(args.run_id))
        scope = {key: str(value) for key, value in vars(args).items() if key in SCOPES and value}
        try:
            overrides = config.parse(config.Overrides, json.loads(args.overrides), "--overrides")
            benchmark = topics.in_run(config.load(Path(args.config), overrides), run.path)
            pipeline = Pipeline(benchmark.metrics, benchmark.name)
        except UserError as problem:
            run.failed(stage, scope, problem)
            raise
        current = Job(benchmark, store, args.run_id, args, run, {}, pipeline)
        started = time.monotonic()
        cpu = time.process_time()
        with current.pipeline.start(), metrics.step(stage):
            try:
                with run.stage(stage, scope) as current.outcome:
                    current.outcome["settings"] = config.fingerprint(benchmark)
                    yield current
                    current.outcome["python_cpu_seconds"] = round(time.process_time() - cpu, 3)
            finally:
                seconds = time.monotonic() - started
                metrics.distribution("stage", "seconds").update(seconds)
                log.info("%s took %.1f s", stage, seconds)
    except UserError as problem:
        print(f"streamgauge {stage}: {problem}", file=sys.stderr, flush=True)
        sys.exit(2)
    except Outage as problem:
        print(f"streamgauge {stage}: worth another try: {problem}", file=sys.stderr, flush=True)
        sys.exit(3)


def _arguments(stage: str) -> argparse.Namespace:
    does, scope = (BY_NAME[stage].does, BY_NAME[stage].scope) if stage else ("measures a cell", "cell")
    parser = argparse.ArgumentParser(description=does)
    parser.set_defaults(stage=stage)
    if not stage:
        parser.add_argument("--stage", required=True, help="name of the measurement")
    parser.add_argument("--config", required=True, help="the benchmark file")
    parser.add_argument("--artifacts", default=os.environ.get("STREAMGAUGE_ARTIFACTS", "artifacts"))
    parser.add_argument("--run-id", required=True)
    parser.add_argument("--overrides", default="{}", help="JSON: see config.Overrides")
    of = {"workload": ("workload",), "experiment": ("experiment",), "cell": ("experiment", "workload", "system")}
    for key in {**of, "pair": ("baseline", "candidate")}.get(scope, ()):
        parser.add_argument(f"--{key}", required=True)
    return parser.parse_args()
