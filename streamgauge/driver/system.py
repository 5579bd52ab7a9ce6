"""The interface between the controller and a system under test, the same for every engine.

It covers what does not travel over the wire. Over the wire the system reads, plans, commits, reports and says that it
is ready (docs/protocol.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.driver.marking import UNMARKED, Marking

if TYPE_CHECKING:  # a system's own environment may lack what the configuration needs
    from streamgauge.base.units import Tick
    from streamgauge.config import System, Workload


class Unsupported(UserError):
    """The engine does not take a query; `why` has its own words."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.why = why


@dataclass(frozen=True)
class Endpoint:
    """A driver process that a system reads from: its queues are numbered 0 … partitions-1 within it."""

    host: str
    port: int
    partitions: int = 1
    token: str = ""
    cafile: str | None = None  # a certificate to trust; with it the connection uses TLS

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class TrialSetup:
    """Settings that a system needs to begin a trial."""

    attempt: str  # unique; goes into hello, ready and every report
    endpoints: tuple[Endpoint, ...]  # read all of them; ready to each; reports to the first alone
    workload: Workload
    columns: dict[str, str]  # declared columns: name -> string, int64, float64
    tick: Tick  # unit of event_time and ingestion_time
    work: Path  # a fresh directory: checkpoints, outputs, logs of this trial
    rate_events_per_s: float  # offered load, for sizing only
    marking: Marking = UNMARKED  # of the ids, which the driver has applied; the round after this one is free


@runtime_checkable
class SystemUnderTest(Protocol):
    """An adapter, made by `make_system`; it runs one trial at a time.

    start        start the warm process, once per search; raise UserError with one line when it cannot.
    begin_trial  begin to read; return at once or when reading. The system itself sends `ready` over the wire.
    end_trial    called when the driver has stopped: end the query within timeout_s, in the middle of a micro-batch if
                 need be, and return figures by name with unit (batch durations, state rows, late drops, cpu_seconds …).
                 timeout_s is 1 unless the system has drained: nobody checks the output of a probe or an overflow.
    alive        False once the process or its query has died; `failure` then says why in one line.
    stop         end everything that was started; safe to call twice and at any time.
    check        optional: try what is not ours, such as a broker; raise UserError with one line when it is missing.
    pin          optional: run only on the CPUs that the benchmark names; called when compilation has ended.
    frozen       optional: a context in which none of its processes runs, for the machine's own speed.
    cpu_seconds  optional: CPU seconds since the start, or None where they are not known.
    handed_on    optional: True once a link has handed on the backlog of a trial's start; the trial ends no earlier.

    An attribute `continuous` that is True says that the engine has no micro-batches (see `is_continuous`). An attribute
    `lasts` that is False says that each closed loop starts a process of its own, which is cold. An attribute
    `semantics`, a `Semantics` of config/systems.py, tells how a user's own engine treats event time.
    """

    name: str

    def start(self) -> None: ...

    def begin_trial(self, setup: TrialSetup) -> None: ...

    def end_trial(self, timeout_s: float) -> dict[str, Any]: ...

    def alive(self) -> bool: ...

    @property
    def failure(self) -> str | None: ...

    def stop(self) -> None: ...


def is_continuous(system: SystemUnderTest) -> bool:
    """True for an engine without micro-batches, whose progress is sampled by the clock instead."""
    return bool(getattr(system, "continuous", False))


def make_system(system: System, work: Path) -> SystemUnderTest:
    """Makes a system's adapter, not yet started. Raises UserError for an unusable engine or settings it refuses.

    The class may have an attribute `Settings`, a model of the keys that a user's own engine takes.
    """
    from streamgauge.config.systems import ENGINES

    where = f"systems.{system.name}.engine"
    adapter = loaded(system.adapter, where) if system.adapter else ENGINES.load(system.engine, where)
    target = system.adapter or ENGINES.outside(system.engine)
    try:
        if not callable(adapter):
            raise TypeError("it is no class")
        made = adapter(_declared(system, adapter), work)
    except UserError:
        raise
    except Exception as problem:  # somebody's own module may do anything
        raise UserError(f"{where}: {target} cannot be made: {type(problem).__name__}: {problem}") from None
    if not isinstance(made, SystemUnderTest):
        raise UserError(f"{where}: {target} does not implement SystemUnderTest; see docs/driver.md")
    return made


def _declared(system: System, adapter: Any) -> System:
    """The settings, checked by the model that a user's adapter declares for them. Raises UserError."""
    from streamgauge.config import parse

    model = getattr(adapter, "Settings", None)
    return system if model is None else parse(model, system.model_dump(), f"systems.{system.name}")
