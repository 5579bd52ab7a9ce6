"""Routes updates: to the running task within a Spark worker, to the driver's registry anywhere else."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext

from streamgauge.metrics.cells import Cell, Key
from streamgauge.metrics.registry import Registry

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


def of_batch() -> AbstractContextManager[None]:
    """Commits the updates made within when this thread's micro-batch is committed; does nothing in a task."""
    return nullcontext() if _task_context() is not None else _registry.of_batch()


def _task_context() -> object | None:
    module = sys.modules.get("pyspark.taskcontext")  # a driver without Spark has none
    return None if module is None else module.TaskContext._taskContext
