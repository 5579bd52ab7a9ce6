"""The release check as a DAG: streams, the check on an idle machine, and a task that fails unless the verdict is go."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG, Param, task
from airflow.sdk.exceptions import AirflowFailException

from streamgauge.app.airflow import factory, run_names
from streamgauge.app.airflow.run_names import PREFIX
from streamgauge.bench.measure import timing
from streamgauge.catalog.stages import BY_NAME, RELEASE
from streamgauge.config import Benchmark
from streamgauge.records.release import ReleaseCheck

PAIR = {side: f"{{{{ params.{side} }}}}" for side in ("baseline", "candidate")}


def build(benchmark: Benchmark, file: Path) -> DAG:
    """The DAG of a benchmark with a release section; its trigger form chooses the systems to compare."""
    names = [system.name for system in benchmark.systems]
    proposed = [system.name for system in benchmark.systems if not system.example] or names
    dag_id = run_names.dag_id(run_names.RELEASE, benchmark.name)
    with DAG(
        **factory.common_settings(dag_id, timing.release_timeout_seconds(benchmark)),
        dag_display_name=f"{benchmark.name}: release check",
        description=f"Release check: {benchmark.description}",
        doc_md=f"Streamgauge {RELEASE.does}.\n\nIt comes from `{file}`. [Pages of all runs]({PREFIX}/); the page of "
        f"one check is also `{factory.ARTIFACTS}/{run_names.page(dag_id, 'RUN')}`.",
        schedule=None,
        tags=["streamgauge", "release"],
        params={
            "baseline": Param(
                proposed[0], type="string", enum=names, title="Baseline", description="compare with this system"
            ),
            "candidate": Param(
                proposed[-1], type="string", enum=names, title="Candidate", description="judge this system"
            ),
        },
    ) as dag:
        plan = factory.plan_task("plan", file, "experiment")
        ingest = factory.stage_task(BY_NAME["ingest"], benchmark, file, {})
        streams = factory.mapped_group(factory.GROUPS["experiment"], [BY_NAME["generate"]], benchmark, file, plan)
        check = factory.stage_task(RELEASE, benchmark, file, PAIR)
        ended = task(task_id="verdict", retries=0)(verdict)(factory.RUN)
        plan >> ingest >> streams >> check >> ended
    return dag


def verdict(run: str) -> str:
    """Returns the verdict's line if it is go. Raises AirflowFailException with it otherwise, also if inconclusive."""
    check = ReleaseCheck.read(factory.ARTIFACTS / "runs" / run / "release.json", "run the check again")
    if check.verdict != "go":
        raise AirflowFailException(check.line)
    return check.line
