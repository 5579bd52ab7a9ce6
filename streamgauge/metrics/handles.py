"""Counter, Distribution, Gauge, and the step they are counted for: usable in the Spark driver and in any task."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ContextDecorator, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from streamgauge.metrics import scope
from streamgauge.metrics.values import Cell, Count, Key, Latest, Spread, check_name, number, spread_of

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT_STEP = "main"
_FARTHEST_NS = 62_135_596_800 * 10**9  # from the epoch back to the year 1
_step: ContextVar[str] = ContextVar("streamgauge_step", default=DEFAULT_STEP)


@dataclass(frozen=True, slots=True)
class _Handle:
    """A metric's name, not bound to a process: it may be pickled into a task. Drops values that are not finite."""

    namespace: str
    name: str

    def __post_init__(self) -> None:
        check_name("namespace", self.namespace)
        check_name("name", self.name)

    def _add(self, delta: Cell) -> None:
        scope.add(Key(delta.kind, self.namespace, self.name, _step.get()), delta)


@dataclass(frozen=True, slots=True)
class Counter(_Handle):
    """A sum; may go down."""

    def inc(self, by: object = 1) -> None:
        if (value := number(by)) is not None:
            self._add(Count(value))

    def dec(self, by: object = 1) -> None:
        if (value := number(by)) is not None:
            self._add(Count(-value))


@dataclass(frozen=True, slots=True)
class Distribution(_Handle):
    """Count, sum, mean, min and max of values."""

    def update(self, value: object) -> None:
        if (one := number(value)) is not None:
            self._add(Spread(1, one, one, one))

    def update_many(self, values: object) -> None:
        """Adds a whole Arrow or numpy array, series or iterable in one update; leaves out nulls, NaN and infinities."""
        if (spread := spread_of(values)).count:
            self._add(spread)

    def update_summary(self, count: int, total: object, low: object, high: object) -> None:
        """Adds values that were summed up elsewhere in one update."""
        figures = [number(value) for value in (count, total, low, high)]
        if None not in figures and figures[0] > 0:  # type: ignore[operator]
            self._add(Spread(*figures))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Gauge(_Handle):
    """The latest value by timestamp."""

    def set(self, value: object, at_ns: int | None = None) -> None:
        """Sets the value. at_ns: wall time in ns since the epoch, by default now.

        A time that no calendar has, such as one in another unit, is left out with its value.
        """
        at = time.time_ns() if at_ns is None else int(at_ns)
        if (one := number(value)) is not None and abs(at) < _FARTHEST_NS:  # backends write it as a date
            self._add(Latest(one, at))


#: how a pipeline declares them
counter, distribution, gauge = Counter, Distribution, Gauge


def current_step() -> str:
    return _step.get()


@overload
def step(name: str) -> _Step: ...


@overload
def step(name: str, function: F) -> F: ...


def step(name: str, function: F | None = None) -> _Step | F:
    """Counts the updates within for a step: `with step("parse"):`, `@step("parse")`, or `step("parse", function)`.

    Steps within steps are joined by a slash. A decorated function or generator takes its full name along into
    Spark's tasks. In a streaming query's foreachBatch, what a decorated function counts is committed with its batch.
    """
    check_name("step", name)
    outer = _step.get()
    full = name if outer in (DEFAULT_STEP, name) else f"{outer}/{name}"
    return _Step(full) if function is None else counted_for(full, function)


class _Step(ContextDecorator):
    def __init__(self, name: str) -> None:
        self._name = name
        self._tokens: list[Token[str]] = []

    def __enter__(self) -> None:
        self._tokens.append(_step.set(self._name))

    def __exit__(self, *problem: object) -> None:
        _step.reset(self._tokens.pop())

    def __call__(self, function: F) -> F:
        return counted_for(self._name, function)


def counted_for(name: str, function: F) -> F:
    """Wraps a function so that its updates count for exactly this step wherever it runs."""
    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def generate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            return _counted(name, function(*args, **kwargs))

        return _looks_like(function, generate)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _called(name, function, args, kwargs)

    return _looks_like(function, call)


def _looks_like(function: F, wrapper: Any) -> F:
    """Gives a wrapper the function's signature: PySpark counts arguments and does not look behind wrappers."""
    with suppress(ValueError, TypeError):  # a builtin may have no signature
        wrapper.__signature__ = inspect.signature(function)
    return cast(F, wrapper)


# these are not nested in the wrappers, which are pickled with all that they refer to


def _called(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    token = _step.set(name)
    try:
        with scope.of_batch():
            result = function(*args, **kwargs)
    finally:
        _step.reset(token)
    return _counted(name, result) if inspect.isgenerator(result) else result


def _counted(name: str, inner: Generator[Any, Any, Any]) -> Iterator[Any]:
    """Yields the generator's items; the step is set only while the generator itself runs, not between its items."""
    try:
        while True:
            token = _step.set(name)
            try:
                item = next(inner)
            except StopIteration:
                return
            finally:
                _step.reset(token)
            yield item
    finally:
        inner.close()
