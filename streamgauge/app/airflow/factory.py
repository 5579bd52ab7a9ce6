"""Builds DAGs from benchmark files. Tasks and their order come from the stage table; nothing here imports Spark.

Read from the environment: STREAMGAUGE_CONFIGS (a folder, or one file), STREAMGAUGE_ARTIFACTS,
STREAMGAUGE_PYTHON (the jobs' interpreter), STREAMGAUGE_SLOTS (size of the pool), STREAMGAUGE_RUN_ID.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

from airflow.sdk import DAG, Asset, Param, TaskGroup, TriggerRule, XComArg, get_current_context, task, task_group
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.definitions.template import literal
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from streamgauge.app.airflow import benchmarks, home, late, notices, run_names
from streamgauge.app.airflow.operator import StageOperator
from streamgauge.app.airflow.run_names import PREFIX
from streamgauge.base.errors import UserError
from streamgauge.base.places import place
from streamgauge.base.shipped import shipped
from streamgauge.base.words import first_of
from streamgauge.bench.measure import timing
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.stages import Scope, Stage, scopes_of, stages_of
from streamgauge.config import Benchmark, Overrides, load, parse
from streamgauge.descriptions.streams import Output

CONFIGS = Path(os.environ.get("STREAMGAUGE_CONFIGS") or shipped("configs"))
ARTIFACTS = place(home.artifacts())
SLOTS = int(os.environ.get("STREAMGAUGE_SLOTS", home.SLOTS))  # size of the pool; a measuring stage takes all
#: name of the folder of a run's records, which the command `run` gives, or which follows from Airflow's name of the run
RUN = os.environ.get("STREAMGAUGE_RUN_ID") or "{{ run_id | run_name }}"
GROUPS = {"workload": "per_workload", "experiment": "per_experiment", "cell": "per_cell"}


def build(benchmark: Benchmark, file: Path, *, nightly: bool = False) -> DAG:
    """Builds a benchmark's DAG: the task plan, the stages, and a leaf that fails if one failed or an answer was wrong.

    nightly: adds the stage that judges the run against earlier nights, and the task that sends its report.
    """
    stages = stages_of(benchmark, nightly=nightly)
    dag_id = run_names.dag_id(run_names.NIGHT if nightly else run_names.RUN, benchmark.name)
    with DAG(
        **common_settings(dag_id, timing.run_timeout_seconds(benchmark, nightly=nightly)),
        dag_display_name=f"{benchmark.name}: every night" if nightly else f"{benchmark.name}: benchmark",
        description=benchmark.description,
        doc_md=_document(benchmark, file, stages, dag_id),
        schedule=benchmarks.schedules(benchmark).get("nightly.schedule" if nightly else "schedule"),
        tags=["streamgauge", "nightly" if nightly else "benchmark"],
        params=_params(benchmark),
        deadline=late_alert(timing.run_seconds(benchmark, nightly=nightly), benchmark) if nightly else None,
    ) as dag:
        experiments = plan_task("plan", file, "experiment")
        producers: dict[str, Any] = {"source": experiments}
        for scope, members in groupby(stages, key=lambda stage: stage.scope):
            if scope == "benchmark":
                for stage in members:
                    operator = stage_task(stage, benchmark, file, {})
                    _after(operator, [producers[kind] for kind in stage.reads if kind in producers])
                    producers[stage.writes] = operator
                continue
            inside = list(members)
            before = [producers[kind] for stage in inside for kind in stage.reads if kind in producers]
            if scope == "experiment":
                scopes = experiments
            elif scope == "workload":
                scopes = plan_task("workloads", file, "workload")
                _after(scopes, before)
            else:  # cells of experiments that succeeded are measured even if other experiments failed
                scopes = plan_task("cells", file, "cell", trigger_rule=TriggerRule.ALL_DONE)
                _after(scopes, before)
                before = []
            group = mapped_group(GROUPS[scope], inside, benchmark, file, scopes)
            _after(group, before)
            producers |= {stage.writes: group for stage in inside}
        if nightly:
            producers["notice"] = task(task_id="notify", trigger_rule=TriggerRule.ALL_DONE)(notify)(
                literal(str(file.absolute())), RUN
            )
            _after(producers["notice"], [producers["judgements"]])
        finish = task(task_id="finish", retries=0, trigger_rule=TriggerRule.NONE_FAILED)(require_right)(
            literal(str(file.absolute())), RUN
        )
        _after(finish, [producer for kind, producer in producers.items() if kind != "source"])
    return dag


def common_settings(dag_id: str, timeout_s: float) -> dict[str, Any]:
    """Returns those settings of a DAG of this name that every DAG has."""
    return {
        "dag_id": dag_id,
        "user_defined_filters": {"overrides": overrides_json, "run_name": partial(run_names.folder, dag_id)},
        "dagrun_timeout": timedelta(seconds=timeout_s),
        "catchup": False,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        "auto_register": False,
        "default_args": {"owner": "streamgauge", "retries": 1, "retry_delay": timedelta(seconds=home.RETRY_SECONDS)},
    }


def late_alert(seconds: float, benchmark: Benchmark) -> DeadlineAlert:
    """Tells by Airflow's deadline alerts that a run takes longer than its timeouts' factor times what it should."""
    return DeadlineAlert(
        name=f"latest end of {benchmark.name}",
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(seconds=max(benchmark.timeouts.least.seconds, benchmark.timeouts.factor * seconds)),
        callback=AsyncCallback(late.warn, {"benchmark": benchmark.name}),
    )


def plan_task(name: str, file: Path, scope: Scope, **settings: Any) -> XComArg:
    """Task that lists what this run's stages of a scope run for."""
    return task(task_id=name, retries=0, **settings)(plan)(literal(str(file.absolute())), scope)


def plan(file: str, scope: Scope, params: dict[str, Any]) -> list[dict[str, str]]:
    """Lists this run's experiments, workloads or cells. Raises UserError, which is one line, for wrong parameters."""
    return scopes_of(_chosen(file, params), scope)


def _chosen(file: str, params: dict[str, Any]) -> Benchmark:
    return load(Path(file), parse(Overrides, json.loads(overrides_json(params)), "parameters"))


def require_right(file: str, run: str, params: dict[str, Any]) -> None:
    """Raises AirflowFailException where answers were wrong, unless the command `run` says so itself."""
    from streamgauge.results.report.run_records import Records  # parsing needs none of it

    if "STREAMGAUGE_RUN_ID" in os.environ:
        return
    cells = Records(_chosen(file, params), Store(ARTIFACTS), run).cells
    if wrong := [f"{one.cell.name}: answers were wrong in {first_of(one.wrong)}" for one in cells if one.wrong]:
        raise AirflowFailException("; ".join(wrong))


def notify(file: str, run: str) -> list[str]:
    """Sends the night's report where the benchmark file says. Raises AirflowException with one line if that fails."""
    try:
        return notices.send(load(Path(file)), ARTIFACTS / "runs" / run, get_current_context())
    except UserError as problem:
        raise AirflowException(str(problem)) from None


def overrides_json(params: dict[str, Any]) -> str:
    """The choices of the trigger form as JSON for the jobs' --overrides; an empty choice leaves what the file says."""
    chosen = {key: value for key, value in params.items() if key in Overrides.model_fields}
    return json.dumps({key: value for key, value in chosen.items() if value not in (None, [])})


def stage_task(stage: Stage, benchmark: Benchmark, file: Path, scope: Any) -> StageOperator:
    return StageOperator(
        task_id=stage.name,
        doc_md=stage.does,
        stage=stage,
        application=str(shipped(f"jobs/{stage.job}.py")),
        artifacts=str(ARTIFACTS),
        run=RUN,
        config=str(file.absolute()),
        overrides="{{ params | overrides }}",
        scope=scope,
        python=os.environ.get("STREAMGAUGE_PYTHON", sys.executable),
        map_index_template="{{ task.scope.values() | join('.') }}" if stage.scope != "benchmark" else None,
        pool=home.POOL,
        pool_slots=SLOTS if stage.measures else 1,
        execution_timeout=timedelta(seconds=timing.timeout_seconds(stage, benchmark)),
        outlets=[Asset(name=f"{benchmark.name} {stage.writes}", uri=f"streamgauge://{benchmark.name}/{stage.writes}")],
        trigger_rule=TriggerRule.ALL_DONE if stage.always else TriggerRule.ALL_SUCCESS,
    )


def mapped_group(name: str, stages: list[Stage], benchmark: Benchmark, file: Path, scopes: XComArg) -> TaskGroup:
    """Task group that runs the stages in order, once per scope: a failure stops only the stages of its own scope."""

    def body(scope: Any) -> None:
        operators: dict[str, StageOperator] = {}
        for stage in stages:
            operators[stage.writes] = stage_task(stage, benchmark, file, scope)
            _after(operators[stage.writes], [operators[kind] for kind in stage.reads if kind in operators])

    return task_group(group_id=name)(body).expand(scope=scopes)


def _after(later: Any, earlier: Iterable[Any]) -> None:
    for one in earlier:
        one >> later


def _params(benchmark: Benchmark) -> dict[str, Param]:
    """Fields of the trigger form."""
    outputs = list(get_args(Output))
    params = {
        "experiments": _names("Experiments", "which streams to make", [one.name for one in benchmark.experiments]),
        "scale": Param(
            benchmark.scale, type="number", title="Scale", exclusiveMinimum=0, maximum=1,
            description="fraction of the source's lines to take, from its beginning",
        ),
        "seed": Param(
            None, type=["null", "integer"], title="Seed", minimum=0, maximum=2**63 - 1,
            description="seed for all experiments; if it is empty, the file's seeds are used",
        ),
        "outputs": Param(
            None, type=["null", "array"], title="Outputs",
            description="formats for all streams; if it is empty, the file's formats are used",
            items={"type": "string", "enum": outputs}, examples=outputs, uniqueItems=True,
        ),
    }  # fmt: skip
    return params | _cell_params(benchmark) if benchmark.all_cells() else params


def _cell_params(benchmark: Benchmark) -> dict[str, Param]:
    """Fields of the form for a benchmark that measures rates."""
    cells = [cell.name for cell in benchmark.all_cells()]
    search = benchmark.search
    return {
        "workloads": _names("Workloads", "which queries to measure", [one.name for one in benchmark.workloads]),
        "systems": _names("Systems", "which systems to measure", [one.name for one in benchmark.systems]),
        "cells": Param(
            None, type=["null", "array"], title="Cells",
            description="which combinations to measure, such as " + cells[0] + "; if it is empty, the file's cells "
            "among the choices above, or all combinations if the file names none",
            items={"type": "string", "enum": cells}, examples=cells, uniqueItems=True,
        ),
        "processes": Param(
            None, type=["null", "integer"], title="Processes of each search", minimum=1, maximum=20,
            description=f"fresh processes; with 3 the interval covers how much they differ. If it is empty, the "
            f"file's {search.processes}",
        ),
        "proof_steps": Param(
            None, type=["null", "integer"], title="Proof steps of each search", minimum=0, maximum=4,
            description="rates tried on each side by proof trials; 0 is quickest and proves "
            f"nothing. If it is empty, the file's {search.proof_steps}",
        ),
        "quick": Param(
            False, type="boolean", title="Quick", description="a first look: a minute or two a cell, wide intervals"
        ),
    }  # fmt: skip


def _names(title: str, what: str, names: list[str]) -> Param:
    return Param(
        names, type="array", title=title, description=what, items={"type": "string", "enum": names}, examples=names,
        minItems=1, uniqueItems=True,
    )  # fmt: skip


def _document(benchmark: Benchmark, file: Path, stages: list[Stage], dag_id: str) -> str:
    return "\n".join(
        [
            f"### {benchmark.name}",
            benchmark.description,
            "",
            f"A run takes {timing.summary(benchmark)}. It comes from `{file}`. [Pages of all runs]({PREFIX}/); the "
            f"page of one run is also `{ARTIFACTS}/{run_names.page(dag_id, 'RUN')}`.",
            "",
            "| stage | reads | writes | once per | |",
            "|---|---|---|---|---|",
            *(f"| {s.name} | {', '.join(s.reads)} | {s.writes} | {s.scope} | {s.does} |" for s in stages),
            "",
            "| experiment | target | delay | seed |",
            "|---|---|---|---|",
            *(f"| {e.name} | {e.wanted} | {e.delays} | {e.seed} |" for e in benchmark.experiments),
        ]
    )
