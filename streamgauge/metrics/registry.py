"""Holds the driver's metrics: attempted and committed values, correct in whatever order workers' reports arrive.

Attempted values count every update, as far as it is known: each run of a worker on a task repeatedly reports all that
it has counted, and its latest report counts. Committed values count what Spark keeps: for each partition of
each stage, the first attempt that succeeded. In a streaming query they are withheld until the micro-batch is finished,
and a batch that runs again replaces what it counted before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from streamgauge.metrics.values import Cell, Cells, Key, Report, decode, merge_into

LIVE_RUNS = 2_000  # runs of killed tasks never report their end; beyond this number the oldest is taken as ended
KNOWN_RUNS = 50_000
KNOWN_STAGES = 5_000


class Batch(NamedTuple):
    """A micro-batch of a streaming query."""

    query: str
    number: int


@dataclass(frozen=True)
class Metric:
    """A metric at an instant; committed is None if nothing has been committed yet."""

    kind: str
    namespace: str
    name: str
    step: str
    attempted: dict[str, Any]  # counter, gauge: value (timestamp_ns); distribution: count sum min max mean
    committed: dict[str, Any] | None


@dataclass
class _Finished:
    """Counts of an unfinished batch so far, in its latest run."""

    run: str
    cells: Cells = field(default_factory=dict)
    partitions: dict[Any, Any] = field(default_factory=dict)


class _Local(threading.local):
    batch: tuple[Batch, str] | None = None


class Registry:
    """Thread-safe; never raises towards the pipeline."""

    def __init__(self, batch_of_thread: Callable[[], tuple[Batch, str] | None] = lambda: None) -> None:
        self.batch_of_thread = batch_of_thread
        self._lock = threading.RLock()
        self._attempted: Cells = {}
        self._committed: Cells = {}
        self._live: OrderedDict[str, tuple[int, Cells]] = OrderedDict()  # run -> its latest report
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._stages: OrderedDict[Any, dict[int, Any]] = OrderedDict()  # stage -> partition -> attempt that counts
        self._batches: dict[Batch, _Finished] = {}
        self._finished: dict[str, int] = {}  # query -> its last finished batch
        self._local = _Local()

    # -- the driver's own updates

    def add(self, key: Key, delta: Cell) -> None:
        with self._lock:
            merge_into(self._attempted, key, delta)
            batch = self._local.batch
            merge_into(self._committed if batch is None else self._batch(*batch).cells, key, delta)

    @contextmanager
    def of_batch(self) -> Iterator[None]:
        """Withholds what this thread counts within until its micro-batch is finished, if it works on one."""
        outer = self._local.batch
        self._local.batch = outer or self.batch_of_thread()
        try:
            yield
        finally:
            self._local.batch = outer

    def attempted(self) -> Cells:
        """Cells of everything that this process itself has counted."""
        with self._lock:
            return dict(self._attempted)

    # -- reports from tasks

    def heard(self, report: Report) -> None:
        """Takes a worker's report of all that one run has counted; with `ended`, the run counts no more."""
        with self._lock:
            self._hear(report["run"], report["number"], decode(report["cells"]), report["ended"])

    def succeeded(self, report: Report, stage: Any) -> None:
        """Takes the report of an attempt that Spark keeps. stage: identifies the stage over its reruns."""
        with self._lock:
            cells = decode(report["cells"])
            self._hear(report["run"], report["number"], cells, True)
            batch = None if report["batch"] is None else Batch(str(report["query"]), int(report["batch"]))
            if batch is None:
                into, partitions = self._committed, self._stages.setdefault(stage, {})
                _bound(self._stages, KNOWN_STAGES)
            elif batch.number <= self._finished.get(batch.query, -1):
                return
            else:
                self.finished(Batch(batch.query, batch.number - 1))  # a query's batches run one after the other
                pending = self._batch(batch, str(report["query_run"]))
                into, partitions = pending.cells, pending.partitions.setdefault(stage, {})
            # two workers may serve one attempt: each of its reports counts, those of other attempts do not
            if partitions.setdefault(report["partition"], report["attempt"]) == report["attempt"]:
                for key, cell in cells.items():
                    merge_into(into, key, cell)

    def finished(self, batch: Batch) -> None:
        """Commits this batch and the earlier ones of its query."""
        with self._lock:
            if batch.number <= self._finished.get(batch.query, -1):
                return
            self._finished[batch.query] = batch.number
            for one in [b for b in self._batches if b.query == batch.query and b.number <= batch.number]:
                for key, cell in self._batches.pop(one).cells.items():
                    merge_into(self._committed, key, cell)

    def _hear(self, run: str, number: int, cells: Cells, ended: bool) -> None:
        if run in self._ended:
            return
        if number >= self._live.get(run, (-1, {}))[0]:
            self._live[run] = number, cells
        if ended:
            self._end(run)
        if len(self._live) > LIVE_RUNS:
            self._end(next(iter(self._live)))

    def _end(self, run: str) -> None:
        self._ended[run] = None
        _bound(self._ended, KNOWN_RUNS)
        for key, cell in self._live.pop(run)[1].items():
            merge_into(self._attempted, key, cell)

    def _batch(self, batch: Batch, run: str) -> _Finished:
        """Counts of an unfinished batch; if it runs again, only the new run counts."""
        pending = self._batches.get(batch)
        if pending is None or pending.run != run:
            pending = self._batches[batch] = _Finished(run)
        return pending

    # -- queries

    def query(
        self, namespace: str | None = None, name: str | None = None, step: str | None = None
    ) -> tuple[Metric, ...]:
        """Metrics that match all given arguments, sorted by key; a step also matches the steps within it."""
        with self._lock:
            attempted: Cells = {}
            for cells in (self._attempted, *(cells for _, cells in self._live.values())):
                for key, cell in cells.items():
                    merge_into(attempted, key, cell)
            return tuple(
                Metric(*key, cell.figures(), None if (kept := self._committed.get(key)) is None else kept.figures())
                for key, cell in sorted(attempted.items(), key=lambda item: item[0])
                if (namespace is None or key.namespace == namespace)
                and (name is None or key.name == name)
                and (step is None or key.step == step or key.step.startswith(f"{step}/"))
            )


def _bound(known: OrderedDict[Any, Any], most: int) -> None:
    while len(known) > most:
        known.popitem(last=False)
