"""Settings of the engine `flink`, and where it is installed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field

from streamgauge.base.errors import UserError
from streamgauge.base.shipped import ASIDE, tools
from streamgauge.base.units import Duration
from streamgauge.config.systems import CHECKPOINT, Reached, Semantics, System, naming_code, resolved

HOME = tools() / "flink"  # as `make flink` makes it
JAR = "streamgauge-flink.jar"
#: Flink's key for the interval of checkpoints
INTERVAL = "execution.checkpointing.interval"


def nested(flat: Mapping[str, object]) -> dict[str, Any]:
    """Converts {"a.b": 1} to {"a": {"b": 1}}, as Flink's file takes no dotted keys beside nested ones.

    Raises ValueError for a.b beside a.b.c: in the file, a.b is either a value or a group.
    """
    made: dict[str, Any] = {}
    for key, value in flat.items():
        for other in flat:
            if other.startswith(f"{key}."):
                raise ValueError(f"found {key} beside {other}; Flink's file cannot hold both, so leave one out")
        *path, last = key.split(".")
        place = made
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value
    return made


#: a system that is killed goes on from the folder that cluster.py sets
_OURS = ("execution.checkpointing.dir", "execution.checkpointing.storage")


def _can_be_nested(conf: dict[str, str]) -> dict[str, str]:
    if named := [key for key in _OURS if key in conf]:
        raise ValueError(f"found {named[0]}, allowed: other keys, as Flink goes on from the run's own checkpoints")
    nested(conf)
    return conf


class FlinkSettings(System):
    """The engine flink: a standalone cluster of Apache Flink on this host."""

    adapter: ClassVar[str] = "streamgauge.bench.engines.flink.flink_system:FlinkSystem"
    semantics: ClassVar[Semantics] = Semantics(
        takes="one by one",
        watermark="at most 1000 rows",
        queues="is the smallest of the queues' own watermarks",
        late="when its window has ended",
        counts="as events that no window holds, or that are below the watermark",
        final="when a checkpoint is complete, every second unless `conf` says otherwise",
        emits="at once",
    )

    engine: Literal["flink"] = Field(description="Apache Flink, row by row")
    flink_home: str | None = Field(default=None, description="folder of Flink, if it is not the one of `make flink`")
    parallelism: Annotated[int, Field(gt=0, le=100)] = Field(
        default=1, description="subtasks of each operator; before a key no more than queues"
    )
    state_store: Literal["hdfs", "rocksdb"] = Field(
        default="hdfs", description="state store: rocksdb, or hdfs, which keeps state on the task manager's heap"
    )
    memory: str = Field(default="2g", description="memory of the task manager's process")
    conf: Annotated[dict[str, str], AfterValidator(_can_be_nested)] = Field(
        default_factory=dict, description="further settings of Flink"
    )

    @property
    def over_wire(self) -> bool:
        return True

    @property
    def workers(self) -> int:
        return self.parallelism

    @property
    def away_s(self) -> Mapping[str, float]:
        return {"kill": 16.0, "restart": 10.0, "rescale": 1.0}

    @property
    def state(self) -> str:
        return "RocksDB" if self.state_store == "rocksdb" else "heap"

    def located(self, base: Path) -> Self:
        return self.model_copy(update=resolved(base, flink_home=self.flink_home))

    def numbers(self, value: int) -> Mapping[str, Mapping[str, object]]:
        return {"parallelism": {"parallelism": value}, CHECKPOINT: {"conf": {**self.conf, INTERVAL: f"{value}ms"}}}

    def checkpointing(self, interval: Duration) -> Self:
        return self.model_copy(update=self.numbers(round(1000 * interval.seconds))[CHECKPOINT])

    def reached(self) -> Iterator[Reached]:
        if self.flink_home:
            yield Reached("program", "flink_home", self.flink_home)
        if keys := naming_code(self.conf):  # Flink loads jars and agents that its settings name
            yield Reached("code", "conf", ", ".join(keys))

    def home(self) -> Path:
        """The folder of Flink's bin, conf and lib. Raises UserError if `make flink` was not run."""
        place = Path(self.flink_home) if self.flink_home else HOME
        home = place / "pyflink"
        if not (home / "lib" / JAR).exists():
            needs = "" if shutil.which("javac") else ", with a JDK, 17 or newer: here is no javac on PATH"
            raise UserError(
                f"systems.{self.name}.engine: found no Flink with Streamgauge's part in {place}; `make flink` makes "
                f"one{ASIDE}{needs}"
            )
        return home

    def check_installed(self) -> None:
        self.home()

    def installed_by(self, versions: Mapping[str, str]) -> str | None:
        if self.flink_home is None:
            return "make flink"
        version = versions.get("flink")
        # any other folder holds what its owner has put there
        return f"make flink FLINK={version}" if Path(self.flink_home).name == f"flink-{version}" else None
