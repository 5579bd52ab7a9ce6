"""Routes updates: to the running task within a Spark worker, to the driver's registry anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from streamgauge.metrics.registry import Registry
from streamgauge.metrics.values import Cell, Key, decode, encode

_registry = Registry()


def registry() -> Registry:
    """The registry of this process; in a worker it stays empty."""
    return _registry


def use(registry: Registry) -> None:
    global _registry
    _registry = registry


def add(key: Key, delta: Cell) -> None:
    context = _task_context()
    if context is None:
        _registry.add(key, delta)
    else:
        from streamgauge.metrics.worker import run_of

        if (run := run_of(context)) is not None:
            run.add(key, delta)


@contextmanager
def collected() -> Iterator[Callable[[], list[list[Any]]]]:
    """Counts into a registry of its own within, for a forked process; yields a function that returns its cells."""
    outer, own = _registry, Registry()
    use(own)
    try:
        yield lambda: encode(own.attempted())
    finally:
        use(outer)


def merge(cells: list[list[Any]]) -> None:
    """Adds what a forked process has counted."""
    for key, delta in decode(cells).items():
        _registry.add(key, delta)


def of_batch() -> AbstractContextManager[None]:
    """Commits the updates made within when this thread's micro-batch is committed; does nothing in a task."""
    return nullcontext() if _task_context() is not None else _registry.of_batch()


def _task_context() -> object | None:
    module = sys.modules.get("pyspark.taskcontext")  # a driver without Spark has none
    return None if module is None else module.TaskContext._taskContext
