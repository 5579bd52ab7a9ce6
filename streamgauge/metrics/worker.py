"""Counts in a Spark worker: holds what one run of the worker on a task counts, and reports it to the driver.

Reports reach the driver in two ways. Spark's accumulators bring those of attempts that Spark keeps. The collector (see
collector.py) gets every report: about one a second, and one at the end of the worker's part of a task, failed or not.
Nothing here may fail a task: a collector that does not answer gets nothing for SILENT_SECONDS.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

from streamgauge.metrics.values import Cell, Cells, Key, Report, Reporter, encode, merge_into

#: holds host, port, token, id of the accumulator; an environment variable reaches every kind of Python function
VARIABLE = "STREAMGAUGE_METRICS"
TELL_SECONDS = 1.0
ANSWER_SECONDS = 2.0
SILENT_SECONDS = 30.0


class Run:
    """A run of a worker on a task, with an id: two workers may serve one task, and one worker many tasks."""

    def __init__(self, context: Any, link: Link) -> None:
        local = context.getLocalProperty
        self._about: Reporter = {
            "run": uuid.uuid4().hex,
            "stage": context.stageId(),
            "partition": context.partitionId(),
            "attempt": context.taskAttemptId(),
            "query": local("sql.streaming.queryId"),
            "batch": local("streaming.sql.batchId"),
            "query_run": local("spark.jobGroup.id"),
        }
        self._link, self._cells = link, Cells()
        self._number = 0
        self._told = time.monotonic()
        self._ended = False
        _report_with(link.accumulator, self)

    def add(self, key: Key, delta: Cell) -> None:
        merge_into(self._cells, key, delta)
        if time.monotonic() - self._told > TELL_SECONDS:
            self.tell()

    def tell(self, *, ended: bool = False) -> None:
        """Sends all counts so far to the collector; does nothing after a call with `ended`."""
        if self._ended:
            return
        self._ended, self._told = ended, time.monotonic()
        self._link.send(self.report(ended=ended))

    def report(self, *, ended: bool) -> Report:
        self._number += 1
        return {**self._about, "number": self._number, "ended": ended, "cells": encode(self._cells)}

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Sends and pickles the last report: PySpark pickles accumulators at the end of a worker's part of a task."""
        self.tell(ended=True)
        return dict, (list(self.report(ended=True).items()),)


class Link:
    """The connection of this process to the collector, made when needed."""

    def __init__(self, address: str) -> None:
        self.address = address
        host, port, self._token, accumulator = json.loads(address)
        self._host, self._port, self.accumulator = str(host), int(port), int(accumulator)
        self._socket: socket.socket | None = None
        self._not_before = 0.0

    def send(self, report: Report) -> None:
        """Sends a report; returns when the collector has it, or does not answer."""
        if time.monotonic() < self._not_before:
            return
        line = json.dumps(report).encode() + b"\n"
        for fresh in (self._socket is None, True):  # a held connection may be dead
            try:
                if self._socket is None:
                    self._socket = socket.create_connection((self._host, self._port), ANSWER_SECONDS)
                    self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    line = self._token.encode() + b"\n" + line
                self._socket.sendall(line)
                if self._socket.recv(1):
                    return
                raise ConnectionError("closed")
            except OSError as problem:
                self._close()
                if fresh or isinstance(problem, TimeoutError):
                    break
        self._not_before = time.monotonic() + SILENT_SECONDS

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


_link: Link | None = None
_current: tuple[object, Run | None] | None = None


def run_of(context: object) -> Run | None:
    """The run of this task; None if there is no collector. A reused worker gets a new context for each task."""
    global _link, _current
    if _current is None or _current[0] is not context:
        address = os.environ.get(VARIABLE)
        if address is None:
            _current = context, None
        else:
            if _link is None:
                _link = Link(address)
                _tell_before_exit()
            try:
                _current = context, Run(context, _link)
            except Exception as problem:  # such as another PySpark, whose inner names differ
                print(f"metrics: this worker cannot count: {problem!r}", file=sys.stderr)
                _current = context, None
    return _current[1]


def _report_with(accumulator: int, run: Run) -> None:
    from pyspark.accumulators import AddingAccumulatorParam, _deserialize_accumulator

    _deserialize_accumulator(accumulator, run, AddingAccumulatorParam(None))._value = run


def _tell_before_exit() -> None:
    """Makes sys.exit send the last report: a worker whose task failed calls it, then os._exit without exit handlers."""
    leave = sys.exit

    def tell_and_leave(*code: Any) -> None:
        try:
            if _current is not None and _current[1] is not None:
                _current[1].tell(ended=True)
        finally:
            leave(*code)

    sys.exit = tell_and_leave  # type: ignore[assignment]
