"""The interface between the controller and a system under test, the same for every engine.

It covers what does not travel over the wire. Over the wire the system reads, plans, commits, reports and says that it
is ready (docs/protocol.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import loaded
from streamgauge.bench.driver.marking import UNMARKED, Marking

if TYPE_CHECKING:  # a system's own environment may lack what the configuration needs
    from streamgauge.base.units import Tick
    from streamgauge.bench.workloads import Spec
    from streamgauge.config import System, Workload
    from streamgauge.config.systems import Semantics
    from streamgauge.records.rules import EngineRules, Rules


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
    patience_s: float = 3.0  # a link tries for so long to reach it, as a network may be away for a while

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
    closed: bool = False  # a closed loop, whose output nobody checks

    @property
    def queues(self) -> int:
        """Number of the queues of all driver processes together."""
        return sum(endpoint.partitions for endpoint in self.endpoints)


#: kill ends the engine as a crash would, and so the trial unless it is resumed; restart ends a worker, which the engine
#: starts again; cut breaks its link to the driver for a while; rescale stops its query, which goes on with twice the
#: parallelism; quota gives its warm processes fewer CPUs
Fault = Literal["kill", "restart", "cut", "rescale", "quota"]


class NotStruck(UserError):
    """A fault that was not brought about, or not to its end, for a reason that is not the system's."""


@dataclass(frozen=True)
class Share:
    """A part of the machine's CPUs: the time of so many of them or, if `whole`, so many CPUs."""

    cpus: float
    whole: bool = False


@dataclass(frozen=True)
class Capabilities:
    """Declaration of an adapter about its engine; it may depend on the settings."""

    continuous: bool = False  # no micro-batches: progress is sampled by the clock
    lasts: bool = True  # its process goes on from a trial to a closed loop; else each starts a cold one
    pins: bool = False  # `pin` does something
    semantics: Semantics | None = None  # of a user's own engine: how it treats event time
    faults: frozenset[Fault] = frozenset()  # that it takes in the middle of a trial
    spared: Mapping[Fault, str] = field(default_factory=dict)  # why it takes no other fault, in words
    cuts_itself: bool = False  # the fault `cut` is of a network that is not the link: `strike` cuts it, `resume` mends


class Adapter(ABC):
    """A system under test, made by `make_system`; it runs one trial at a time.

    rules        declare which events the engine loses to a query, before anything starts; `Spec.operators` helps.
    start        start the warm process, once per search; raise UserError with one line when it cannot.
    begin_trial  begin to read; return at once or when reading. The system itself sends `ready` over the wire.
    end_trial    called when the driver has stopped: end the query within timeout_s, in the middle of a micro-batch if
                 need be, and return figures by name with unit (batch durations, state rows, late drops, cpu_seconds …).
                 timeout_s is 1 unless the system has drained: nobody checks the output of a probe or an overflow.
    alive        False once the process or its query has died; `failure` then says why in one line.
    stop         end everything that was started; safe to call twice and at any time.

    An engine need not have the other methods. Without them it has no capability, and nothing to check or to freeze.
    Settings: a model of the keys that a user's own engine takes; None: they reach the adapter as they stand.
    late_rules: for `streamgauge advise`, which asks before there is a query; None: it does not speak of the engine.
    """

    Settings: ClassVar[type[System] | None] = None
    late_rules: ClassVar[EngineRules | None] = None
    capabilities = Capabilities()
    failure: str | None = None

    def __init__(self, system: System, work: Path) -> None:
        """Takes the settings, and a directory for its files."""
        self.name, self._work = system.name, work

    @abstractmethod
    def rules(self, spec: Spec) -> Rules: ...

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def begin_trial(self, setup: TrialSetup) -> None: ...

    @abstractmethod
    def end_trial(self, timeout_s: float) -> Mapping[str, object]: ...

    @abstractmethod
    def alive(self) -> bool: ...

    @abstractmethod
    def stop(self) -> None: ...

    def check(self) -> None:  # noqa: B027 few engines need something that is not ours
        """Tries what is not ours, such as a broker. Raises UserError, one line, when it is missing."""

    def pin(self) -> None:  # noqa: B027 see `capabilities`
        """Binds it to the CPUs that the benchmark names; called when compilation has ended."""

    def frozen(self) -> AbstractContextManager[None]:
        """Returns a context in which none of its processes runs, for the machine's own speed."""
        return nullcontext()

    def cpu_seconds(self) -> float | None:
        """CPU seconds since the start; None where they are not known."""
        return None

    def vitals(self) -> Mapping[str, float]:
        """Returns what it uses at this moment, by the names of `measure/vitals.py`; what is not known is left out."""
        return {}

    def give(self, share: Share | None) -> None:
        """Gives all its processes that share of the CPUs from now on, if `capabilities` declare the fault `quota`.

        None: all CPUs. Before it starts, and after a new start, the same holds. Raises UserError where it cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} gives no shares, but was asked for {share}")

    def handed_on(self) -> bool:
        """True once a link has handed on the backlog of a trial's start; the trial ends no earlier."""
        return True

    def brace(self, fault: Fault) -> None:  # noqa: B027 few engines lose what the oracle needs
        """Takes over what would die with the fault, just before it. Raises UserError, one line, if it cannot."""

    def strike(self, fault: Fault) -> None:
        """Kills the process that the fault `kill` or `restart` is about, or cuts what `cuts_itself` says.

        Asked only for a fault that `capabilities` declare. Raises UserError, one line, if it cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} kills nothing, but was asked for {fault}")

    def resume(self) -> None:
        """Starts it again after `kill`, or mends after `cut`; goes on with its trial from what it keeps.

        Raises UserError, one line, if it does not come up.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot go on with a trial after it was killed")

    def rescale(self) -> None:
        """Stops the query, and goes on with its trial from what it keeps, with twice the parallelism.

        The next trial has the parallelism of the settings. Raises UserError, one line, if it does not come up.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot change the parallelism in a trial")


class Answering(Adapter):
    """A system that keeps the rows of its answers if it is asked to before a trial."""

    keeps_answer = False

    @abstractmethod
    def answer(self) -> Mapping[str, list[Any]]:
        """The rows of the last trial's answer, by column."""


def make_system(system: System, work: Path) -> Adapter:
    """Makes a system's adapter, not yet started. Raises UserError for an unusable engine or settings it refuses."""
    from streamgauge.config.systems import ENGINES, Semantics

    where = f"systems.{system.name}.engine"
    adapter = loaded(system.adapter, where) if system.adapter else ENGINES.load(system.engine, where)
    target = system.adapter or ENGINES.outside(system.engine)
    if not (isinstance(adapter, type) and issubclass(adapter, Adapter)):  # its `Settings` would be silently ignored
        raise UserError(f"{where}: {target} is no class that derives from Adapter; see docs/engines.md")
    if missing := adapter.__abstractmethods__:
        raise UserError(f"{where}: {target} lacks {', '.join(sorted(missing))}; see docs/engines.md")
    try:
        made = adapter(_declared(system, adapter), work)
        declared: object = made.capabilities
        if not isinstance(declared, Capabilities):
            raise UserError(f"{where}: {target}: found capabilities {declared!r:.80}, allowed: Capabilities(…)")
        semantics: object = declared.semantics
        if not isinstance(semantics, Semantics | None):
            allowed = "Semantics(…), of texts"
            raise UserError(f"{where}: {target}: semantics: found {semantics!r:.80}, allowed: {allowed}")
    except UserError:
        raise
    except Exception as problem:  # somebody's own module may do anything
        raise UserError(f"{where}: {target} cannot be made: {_line(problem)}") from None
    return made


def rules_of(system: Adapter, spec: Spec) -> Rules:
    """The late rules that an adapter declares for a query. Raises UserError if it declares none that fit the query."""
    from pydantic import ValidationError

    from streamgauge.bench.driver.figures import first_mistake
    from streamgauge.bench.workloads import find
    from streamgauge.records.rules import Rules

    where, frames = f"systems.{system.name}.engine: its late rules", find(spec.query).streams
    try:
        declared: object = system.rules(spec)
    except UserError:
        raise
    except ValidationError as problem:
        raise Unsupported(where, first_mistake(problem)) from None
    except Exception as problem:  # somebody's own module may do anything
        raise Unsupported(where, _line(problem)) from None
    if not isinstance(declared, Rules):
        raise Unsupported(where, f"found {declared!r:.80}, allowed: Rules(…) of streamgauge.records.rules")
    if len(declared.operators) != frames:
        raise Unsupported(where, f"found {len(declared.operators)} operators, allowed: {frames}, as in Spec.operators")
    for number, one in enumerate(declared.operators):
        asked = spec.operators(one.kind)[number]
        if one.span != asked.span:
            raise Unsupported(where, f"operators.{number}: found {one.span}, but the workload asks for {asked.span}")
    if declared.clock == "own key" and spec.key is None:
        raise Unsupported(where, f"found clock 'own key', allowed: another one, as {spec.query} has no key")
    return declared


def _line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"


def _declared(system: System, adapter: type[Adapter]) -> System:
    """The settings, checked by the model that a user's adapter declares for them. Raises UserError."""
    from streamgauge.config import parse

    model = adapter.Settings
    return system if model is None else parse(model, system.model_dump(), f"systems.{system.name}")
