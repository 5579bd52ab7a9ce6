"""Proves that a stream is what it claims to be: Great Expectations suites judge the data and measured facts."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue
from pyspark.sql import DataFrame, SparkSession

from streamgauge.base.errors import UserError
from streamgauge.base.places import copy, place, remove, workspace
from streamgauge.base.schemas import events_schema, stream_schema
from streamgauge.catalog.artifacts import MANIFEST, Artifact, Build, Store
from streamgauge.descriptions.source import Source
from streamgauge.descriptions.streams import Experiment
from streamgauge.records.manifests import EventsManifest, ValidationManifest
from streamgauge.records.validation import Expectation, Facts, Validation
from streamgauge.streams.keys import Sourced, events_key, stream_key, validation_key
from streamgauge.streams.stages import likeness
from streamgauge.streams.stages.facts import facts, read
from streamgauge.streams.stages.tasks import OnSpark

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.data_context import EphemeralDataContext

RESULT, DOCS = "result.json", "docs/index.html"


def import_expectations() -> None:
    """Begins to import Great Expectations in the background.

    The import takes as long as Spark's start, a third of a small validation.
    """
    threading.Thread(target=importlib.import_module, args=("great_expectations",), daemon=True).start()


def run(
    spark: SparkSession, given: Sourced, store: Store, experiment: Experiment, suites: Path, run_path: Path
) -> Artifact:
    """Validates an experiment's stream, unless that is done; returns the finished validation.

    Result and Data Docs are also put into run_path/validation-<experiment>, whatever the outcome.
    Raises UserError that names every failed expectation; then nothing is published.
    """
    shown = run_path / f"validation-{experiment.name}"

    def make(build: Build) -> None:
        events = store.need("events", events_key(store, given), "ingest")
        stream = store.need("stream", stream_key(store, given, experiment), "generate")
        with workspace(build.path) as folder:
            context = new_context(folder / "docs")
            validation = validate(spark, context, events, stream, given.source, experiment, suites)
            context.build_data_docs()
            validation.write(folder / RESULT)
            _show(folder, shown)
        if failed := validation.failed:
            reasons = "; ".join(f"{e.name} ({e.text})" if e.text else e.name for e in failed)
            raise UserError(
                f"experiment {experiment.name}: {len(failed)} of {len(validation.expectations)} expectations failed: "
                f"{reasons}; see {shown / DOCS}"
            )
        build.manifest |= ValidationManifest(
            experiment=experiment.name,
            success=True,
            expectations=len(validation.expectations),
            failed=(),
            facts=validation.facts,
            result=RESULT,
            docs=DOCS,
        ).to_json()

    finished = store.made("validation", validation_key(store, given, experiment, suites), make)
    if finished.reused:
        _show(finished.path, shown)
    return finished


def validate(
    spark: SparkSession,
    context: EphemeralDataContext,
    events: Artifact,
    stream: Artifact,
    source: Source,
    experiment: Experiment,
    suites: Path,
) -> Validation:
    """Judges the data first; facts are measured only on data that have their columns, types and no nulls."""
    own = [place(file) for file in source.expectations]
    check_names(own)
    arrival = source.arrival is not None
    declared = events.read(EventsManifest).columns  # in the order of the benchmark file that was ingested first
    columns = {
        "events_columns": events_schema(declared, arrival=arrival).names,
        "stream_columns": stream_schema(declared, arrival=arrival).names,
    }
    judged = [
        *judge(context, suites / "events.json", read(spark, events), columns),
        *judge(context, suites / "stream.json", read(spark, stream), columns),
    ]
    sound = all(e.success for e in judged)
    measured: Facts | None = None
    for file in own:
        judged += judge(context, file, read(spark, events), columns)
    if sound:
        measured = facts(spark, events, stream, experiment)
        judged += judge(context, suites / "stream_facts.json", measured)
    success = all(e.success for e in judged)
    alike = likeness.measure(OnSpark(spark), stream, experiment) if sound else None
    return Validation(
        experiment=experiment.name, success=success, expectations=tuple(judged), facts=measured, likeness=alike
    )


def check_names(own: Sequence[Path]) -> None:
    """Raises UserError if a user's suite has a name that is taken: judgements and Data Docs go by names."""
    taken = {"events", "stream", "stream_facts"}
    for file in own:
        name = str(load_suite(file).name)
        if name in taken:
            raise UserError(f"{file}: found the name {name!r}, which another suite has; rename it")
        taken.add(name)


def judge(
    context: EphemeralDataContext,
    suite_file: Path,
    data: DataFrame | Facts,
    parameters: dict[str, list[str]] | None = None,
) -> list[Expectation]:
    """Judges a frame, or facts by their names, by a suite; returns judgements in the suite's order.

    Raises UserError for an unusable suite.
    """
    import great_expectations as gx
    import pandas as pd
    from great_expectations.exceptions import SuiteParameterError

    suite = load_suite(suite_file)
    # facts would cost a hundred jobs in Spark, and cost none in pandas
    row = data if isinstance(data, dict) else {}
    source = context.data_sources.get("pandas" if row else "spark")
    batches = source.add_dataframe_asset(suite.name).add_batch_definition_whole_dataframe("all")
    definition = context.validation_definitions.add(
        gx.ValidationDefinition(name=suite.name, data=batches, suite=context.suites.add(suite))
    )
    try:
        result = definition.run(
            batch_parameters={"dataframe": pd.DataFrame([row]) if row else data},
            expectation_parameters=parameters or {},
            result_format="BASIC",
        )
    except SuiteParameterError:
        raise UserError(
            f"{suite_file}: uses $PARAMETER {', '.join(suite.suite_parameter_options)}, "
            f"allowed: {', '.join(parameters or {}) or 'none'}"
        ) from None
    judged = {r.expectation_config.meta["name"]: r for r in result.results}
    return [
        Expectation(
            name=(name := e.meta["name"]),
            suite=suite.name,
            note=e.description or "",
            success=bool(judged[name].success),
            observed=_observed(judged[name], row),
        )
        for e in suite.expectations
    ]


def load_suite(file: Path) -> ExpectationSuite:
    """Loads a suite, in which every expectation has its own name in its meta. Raises UserError."""
    from great_expectations import ExpectationSuite

    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
        for number, one in enumerate(raw["expectations"], 1):  # Great Expectations itself needs no names
            one["meta"] = {"name": f"{raw['name']}-{number}-{one['type']}", **(one.get("meta") or {})}
        suite = ExpectationSuite(**raw)
        names = [e["meta"]["name"] for e in raw["expectations"]]
    except OSError as problem:
        raise UserError(f"{file}: cannot be read: {problem.strerror}; restore it from the repository") from None
    except Exception as problem:
        raise UserError(f"{file}: is not a suite of named expectations: {type(problem).__name__}: {problem}") from None
    # an expectation with a wrong argument is only logged and left out
    lost = set(names) - {e.meta["name"] for e in suite.expectations}
    if lost or len(set(names)) < len(names):
        twice = {n for n in names if names.count(n) > 1}
        raise UserError(f"{file}: expectations with wrong arguments: {sorted(lost)}, duplicate names: {sorted(twice)}")
    return suite


def new_context(docs: Path) -> EphemeralDataContext:
    """Makes a Great Expectations context without a project or analytics; it writes its Data Docs to a directory."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs)},
        "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
    }
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        data_docs_sites={"streamgauge": site},
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False, metric_calculations=False),
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    context.data_sources.add_spark("spark", persist=False)
    context.data_sources.add_pandas("pandas")
    return context


def _observed(result: Any, row: Facts) -> JsonValue:
    kwargs = result.expectation_config.kwargs
    if row:
        return {name: row[name] for key in ("column", "column_A", "column_B") if (name := kwargs.get(key)) in row}
    if "observed_value" in result.result:
        observed: JsonValue = json.loads(json.dumps(result.result["observed_value"], default=str))
        return observed
    if "unexpected_count" in result.result:
        return {"unexpected": result.result["unexpected_count"]}
    raised = result.exception_info
    raised = raised if "exception_message" in raised else next(iter(raised.values()), {})
    return str(raised.get("exception_message") or "")[:300] if isinstance(raised, dict) else None


def _show(result: Path, shown: Path) -> None:
    """Copies result and Data Docs to where the run's page links them."""
    remove(shown)
    copy(result, shown)
    (shown / MANIFEST).unlink(missing_ok=True)
