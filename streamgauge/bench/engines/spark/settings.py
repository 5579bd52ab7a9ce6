"""Settings of the engine `spark`, and where it is installed. Needs no Spark."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from streamgauge.base.errors import UserError
from streamgauge.base.field_types import Delay
from streamgauge.base.shipped import ASIDE, tools
from streamgauge.base.units import Duration
from streamgauge.bench.driver.system import Fault
from streamgauge.config.systems import Reached, Semantics, System, naming_code, resolved

JAR = tools() / "jvm-link" / "streamgauge-spark.jar"  # as `make jvm-link` makes it


def _built_in() -> str | None:
    try:
        return distribution("pyspark").version
    except PackageNotFoundError:
        return None


class SparkSettings(System):
    """The engine spark: Spark Structured Streaming, in micro-batches or in Real-time Mode."""

    adapter: ClassVar[str] = "streamgauge.bench.engines.spark.spark_system:SparkSystem"
    semantics: ClassVar[Semantics] = Semantics(
        takes="in micro-batches, of `batch_rows` at most",
        watermark="every micro-batch, by the largest event time of the one before",
        queues="follows the latest event of any queue",
        late="when its window had ended before its micro-batch began",
        counts="as groups of a micro-batch in aggregations, as rows in joins",
        final="when a micro-batch is committed",
        emits="at the end of its micro-batch",
    )

    engine: Literal["spark"] = Field(
        default="spark", description="Spark Structured Streaming, in micro-batches or in Real-time Mode"
    )
    master: str = Field(default="local[1]", description="the master, such as local[2] or spark://host:7077")
    spark_home: str | None = Field(default=None, description="folder of another Spark than the built-in one")
    python: str | None = Field(
        default=None, description="Python of that Spark; without spark_home, the PySpark of this Python"
    )
    link: Literal["python", "jvm"] = Field(
        default="python",
        description="source and sink: in Python workers, or, after `make jvm-link`, in the JVM",
    )
    mode: Literal["micro-batch", "real-time"] = Field(
        default="micro-batch",
        description="real-time: Spark's Real-time Mode, which needs link jvm and state_store rocksdb",
    )
    state_store: Literal["hdfs", "rocksdb"] = Field(
        default="hdfs", description="state store: rocksdb, or hdfs, in memory"
    )
    changelog_checkpointing: bool = Field(
        default=False, description="rocksdb: checkpoints hold changes instead of whole states"
    )
    checkpoint_file_manager: Literal["default", "filesystem"] = Field(
        default="filesystem", description="filesystem, or default: Spark's own, slower on local disks"
    )
    checkpoints: str | None = Field(
        default=None,
        description="folder for checkpoints that all of Spark's hosts reach, such as hdfs://…; default: beside the run",
    )
    trigger: Delay = Field(
        default=Duration(0), description="interval of micro-batches; 0s: each begins when the one before it ends"
    )
    batch_rows: Annotated[int, Field(gt=0)] = Field(
        default=10_000_000, description="largest number of rows in a micro-batch; a small one limits the rate"
    )
    memory: str = Field(default="2g", description="memory of the driver's process, where a local master does the work")
    conf: dict[str, str] = Field(default_factory=dict, description="further settings of Spark")

    @model_validator(mode="after")
    def _linked(self) -> Self:
        if self.mode == "real-time" and (self.link != "jvm" or self.state_store != "rocksdb"):
            raise ValueError("mode: found real-time, which needs link: jvm and state_store: rocksdb")
        return self

    @property
    def away_s(self) -> Mapping[str, float]:
        usual = {"kill": 19.0, "restart": 6.5, "rescale": 25.0}  # its plan is compiled again
        return {fault: seconds for fault, seconds in usual.items() if fault not in self.spared}

    @property
    def workers(self) -> int | None:
        local = re.match(r"local(?:\[(\d+)|-cluster\[(\d+),(\d+))", self.master)
        return math.prod(int(number) for number in local.groups() if number) if local else None

    @property
    def is_local(self) -> bool:
        """False on a cluster, whose executors are no children of ours."""
        return self.master.startswith("local")

    @property
    def state(self) -> str:
        return "RocksDB" if self.state_store == "rocksdb" else "heap"

    @property
    def over_wire(self) -> bool:
        return self.mode == "real-time"

    def located(self, base: Path) -> Self:
        return self.model_copy(update=resolved(base, spark_home=self.spark_home, python=self.python))

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:
        """The threads of local[2], or the executors of local-cluster[2,1,1024]."""
        master, count = re.subn(r"^(local(?:-cluster)?\[)\d+", rf"\g<1>{value}", self.master)
        return {"master": {"master": master}} if count else {}

    def checkpointing(self, interval: Duration) -> Self | None:
        """The settings with micro-batches at that interval, as each one is a checkpoint; None in Real-time Mode."""
        return self.model_copy(update={"trigger": interval}) if self.mode == "micro-batch" else None

    def reached(self) -> Iterator[Reached]:
        for key, path in (("spark_home", self.spark_home), ("python", self.python)):
            if path:
                yield Reached("program", key, path)
        for key, name in (("master", self.master), ("checkpoints", self.checkpoints or "")):
            if "://" in name:
                yield Reached("host", key, name)
        if keys := naming_code(self.conf):  # Spark loads jars, plugins and agents that its settings name
            yield Reached("code", "conf", ", ".join(keys))

    def home(self) -> Path:
        """Returns spark_home, else the PySpark beside its Python, else the built-in one. Raises UserError."""
        where = f"systems.{self.name}"
        if self.spark_home is not None:
            home = Path(self.spark_home)
        elif self.python is not None and "/" in self.python:
            if not Path(self.python).exists():
                raise UserError(
                    f"{where}.python: found {self.python}, which does not exist; `make spark-env` builds one"
                )
            homes = [*Path(self.python).parents[1].glob("lib/python3*/site-packages/pyspark")]
            if not homes:
                raise UserError(f"{where}.python: found {self.python}, which has no PySpark; give spark_home")
            home = homes[0]
        else:
            try:  # no import: within a spark-submit it would find the zip that Spark has put first on the path
                home = Path(str(distribution("pyspark").locate_file("pyspark")))
            except PackageNotFoundError:
                raise UserError(
                    f"{where}: Spark is not installed; install the extra `jobs` or give spark_home"
                ) from None
        if not (home / "bin" / "spark-submit").exists():
            raise UserError(f"{where}.spark_home: found {home}, which has no bin/spark-submit")
        return home

    def jars(self) -> list[Path]:
        """Returns the jars that it needs besides Spark's own. Raises UserError if one was not built."""
        if self.link == "jvm" and not JAR.exists():
            raise UserError(
                f"systems.{self.name}.link: found jvm, which was not built; `make jvm-link` builds it{ASIDE}"
            )
        return [JAR] if self.link == "jvm" else []

    def check_installed(self) -> None:
        self.home()
        self.jars()

    def installed_by(self, versions: Mapping[str, str]) -> str | None:
        version = versions.get("spark")
        return f"make spark-env SPARK={version}" if version and version != _built_in() else None

    @property
    def spared(self) -> dict[Fault, str]:
        """Reasons why a trial of it takes no such fault."""
        spared: dict[Fault, str] = {}
        if not self.master.startswith("local-cluster"):
            where = "within its driver" if self.is_local else "on hosts that are not ours"
            spared["restart"] = f"its executors run {where}"
        if not self.is_local:
            spared["cut"] = "its executors reach the driver from other hosts"
            spared["quota"] = "its executors run on other hosts"
        if self.mode == "real-time":
            spared["kill"] = "Real-time Mode keeps the account of its batches in the process that is killed"
        elif re.match(r"(?!file:)[A-Za-z][\w+.-]*:", self.checkpoints or ""):
            spared["kill"] = "its checkpoints are not on this host"
        if not re.match(r"local\[\d", self.master):
            spared["rescale"] = "its master names no number of threads, as local[2] does"
        elif "kill" in spared:
            spared["rescale"] = spared["kill"]
        return spared

    @property
    def foreign(self) -> bool:
        """True for another Spark or Python than those of this library."""
        return self.spark_home is not None or self.python is not None
