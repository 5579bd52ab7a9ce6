"""Systems that can be asked a suite of queries: the built-in Spark with different settings, others over the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.spark.engine import GLOBAL_WATERMARK, state_store
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.config import Benchmark, System
from streamgauge.config.systems import ENGINES, settings_of

SYSTEMS = (
    SparkSettings(name="spark", state_store="rocksdb"),
    SparkSettings(name="spark-changelog", state_store="rocksdb", changelog_checkpointing=True),
    SparkSettings(name="spark-hdfs", state_store="hdfs"),
    SparkSettings(name="spark-one-watermark", state_store="rocksdb", conf=GLOBAL_WATERMARK),
    # a slot for each of two readers, and for the one partition of each stage after them
    SparkSettings(
        name="spark-real-time",
        link="jvm",
        mode="real-time",
        state_store="rocksdb",
        master="local[6]",
        conf={"spark.sql.shuffle.partitions": "1"},
    ),
)


def conf(system: SparkSettings) -> Mapping[str, str]:
    """Settings of a system that a running session can take on."""
    return {**state_store(system), **{key: value for key, value in system.conf.items() if key.startswith("spark.sql.")}}


def named(name: str) -> System:
    """Finds one of SYSTEMS, or an engine that is asked over the wire. Raises UserError naming those that exist."""
    models = [(engine, settings_of(engine)) for engine in ENGINES.built_in]
    others = [model.model_validate({"name": engine, "engine": engine}) for engine, model in models if _plain(model)]
    systems = {one.name: one for one in (*SYSTEMS, *(one for one in others if one.over_wire))}
    if name not in systems:
        raise UserError(f"--system: found {name!r}, allowed: {', '.join(systems)}")
    return systems[name]


def _plain(model: type[System]) -> bool:
    """True if a system needs no key but its name and its engine."""
    return {key for key, field in model.model_fields.items() if field.is_required()} <= {"name", "engine"}


def over_wire(benchmark: Benchmark) -> tuple[System, ...]:
    """The benchmark's systems that are asked over the wire."""
    return tuple(system for system in benchmark.systems if system.over_wire)


def askable(system: System) -> TypeGuard[SparkSettings]:
    """True for a system that can be asked whole suites: its queries run in one session, not over the wire."""
    return isinstance(system, SparkSettings) and not system.over_wire


def require_askable(systems: Sequence[System]) -> None:
    """Raises UserError if a release check could ask none of them its queries."""
    if systems and not any(map(askable, systems)):
        values = systems[0].model_dump()
        key = "mode" if values.get("mode") == "real-time" else "engine"
        raise UserError(
            f"systems.{systems[0].name}.{key}: found {values[key]}, which cannot run the queries; "
            "set release.queries: []"
        )


def asked(benchmark: Benchmark) -> tuple[SparkSettings, ...]:
    """The benchmark's systems on the built-in Spark, else `spark`; the first of them must answer all queries."""
    return tuple(s for s in benchmark.systems if askable(s) and not s.foreign) or SYSTEMS[:1]


def foreign(benchmark: Benchmark) -> tuple[SparkSettings, ...]:
    """The benchmark's Spark systems with a Spark or a Python of their own, which need a process of their own."""
    return tuple(s for s in benchmark.systems if askable(s) and s.foreign)
