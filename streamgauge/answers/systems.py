"""Systems that can be asked a suite of queries: the built-in Spark with different settings."""

from __future__ import annotations

from collections.abc import Mapping

from streamgauge.base.errors import UserError
from streamgauge.config import Benchmark, System
from streamgauge.driver.system import engine_row
from streamgauge.engines.spark.engine import GLOBAL_WATERMARK, state_store

SYSTEMS = (
    System(name="spark", state_store="rocksdb"),
    System(name="spark-changelog", state_store="rocksdb", changelog_checkpointing=True),
    System(name="spark-hdfs", state_store="hdfs"),
    System(name="spark-one-watermark", state_store="rocksdb", conf=GLOBAL_WATERMARK),
)


def conf(system: System) -> Mapping[str, str]:
    """Settings of a system that a running session can take on."""
    return {**state_store(system), **{key: value for key, value in system.conf.items() if key.startswith("spark.sql.")}}


def system(name: str) -> Mapping[str, str]:
    """Settings of one of SYSTEMS. Raises UserError naming those that exist."""
    for one in SYSTEMS:
        if one.name == name:
            return conf(one)
    raise UserError(f"--system: found {name!r}, allowed: {', '.join(one.name for one in SYSTEMS)}")


def asked(benchmark: Benchmark) -> tuple[System, ...]:
    """The benchmark's systems on the built-in Spark, else `spark`; the first of them must answer all queries."""
    return tuple(s for s in benchmark.systems if engine_row(s).suites and not _foreign(s)) or SYSTEMS[:1]


def foreign(benchmark: Benchmark) -> tuple[System, ...]:
    """The benchmark's Spark systems with a Spark or a Python of their own, which need a process of their own."""
    return tuple(s for s in benchmark.systems if engine_row(s).suites and _foreign(s))


def _foreign(system: System) -> bool:
    return system.spark_home is not None or system.python is not None
