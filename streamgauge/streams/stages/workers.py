"""Runs a stage's work in processes of this host, without a JVM; tasks.py does the same in Spark's tasks.

Both run the same functions over the same items, so a stream has the same bytes whichever made it.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamgauge import metrics
from streamgauge.base.errors import UserError
from streamgauge.base.parquet import parquet_file
from streamgauge.base.places import publish
from streamgauge.base.processes import postponed

T = TypeVar("T")
R = TypeVar("R")


_LARGE = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}


class Workers(Protocol):
    """Several processes that share work."""

    @property
    def cores(self) -> int:
        """Number of items that are worked on at the same time."""

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
        """Returns work(item) for each item, in order. Raises the first UserError or OSError that a worker raised."""

    def sort(self, files: list[Path], keys: list[str], schema: pa.Schema, scratch: Path, parts: int) -> list[Path]:
        """Sorts all rows by the keys, nulls last, into so many files in `scratch`; returns them in order."""


@dataclass(frozen=True)
class Forked:
    """Copies of this process: they start in milliseconds and see its memory. For what fits one host."""

    cores: int = len(os.sched_getaffinity(0))

    def each(self, items: Sequence[T], work: Callable[[T], R]) -> list[R]:
        count = min(len(items), self.cores)
        if count < 2:
            return [work(item) for item in items]
        context = multiprocessing.get_context("fork")
        following = context.Value("q", 0)  # the next item that nobody has begun
        counted = metrics.counted_for(metrics.current_step(), work)
        pipes, copies = [], []
        gc.freeze()  # a copy that collects a client of Kafka, whose threads it has not, ends in a segmentation fault
        try:
            with postponed() as signals:  # within a fork a signal is lost, or ends the copy alone
                for _ in range(count):
                    receiver, sender = context.Pipe(duplex=False)
                    copy = context.Process(target=_work, args=(items, counted, following, sender), daemon=True)
                    with warnings.catch_warnings():  # no copy takes a lock that another thread of this process may hold
                        warnings.simplefilter("ignore", DeprecationWarning)
                        copy.start()
                    sender.close()
                    pipes.append(receiver)
                    copies.append(copy)
            if signals:
                raise KeyboardInterrupt
            return _gathered(len(items), pipes)
        finally:
            gc.unfreeze()
            for copy in copies:
                copy.kill()
                copy.join()
            for pipe in pipes:
                pipe.close()

    def sort(self, files: list[Path], keys: list[str], schema: pa.Schema, scratch: Path, parts: int) -> list[Path]:
        """Sorts in memory, which takes about three times the rows' size."""
        whole = pa.concat_tables(
            [parquet_file(file).read(schema.names).select(schema.names).cast(schema) for file in files]
        )
        # all lines together may have more than 2 GiB, which is what 32-bit offsets reach
        whole = whole.cast(pa.schema([field.with_type(_LARGE.get(field.type, field.type)) for field in schema]))
        whole = whole.combine_chunks()
        ascending = [(key, "ascending") for key in keys]
        order = pc.sort_indices(whole.select(keys), sort_keys=ascending)
        size = -(-whole.num_rows // parts)
        scratch.mkdir()

        def write(start: int) -> Path:
            run = whole.take(order.slice(start, size))
            name = f"part-{start:015d}.parquet"
            return scratch / publish(scratch / name, lambda sink: pq.write_table(run, sink, compression="snappy"))

        return self.each(range(0, whole.num_rows, size), write)


def shared(items: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """Cuts items into as many consecutive shares, of about equally many."""
    return [items[len(items) * i // tasks : len(items) * (i + 1) // tasks] for i in range(tasks)]


def be_one_core() -> None:
    """Prepares a process that works on items: it is one core, and makes arrays of the same sizes again and again."""
    pa.set_cpu_count(1)  # threads of its own would take others' cores
    pa.set_io_thread_count(1)
    keep_pages()


def _work(items: Sequence[Any], work: Callable[[Any], Any], following: Any, results: Connection) -> None:
    """Works on items until none is left, in a copy; sends (index, result or problem), then what it has counted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells every process; the first one ends its copies
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    be_one_core()
    with suppress(BrokenPipeError), metrics.collected() as cells:
        while True:
            with following.get_lock():
                index = following.value
                following.value += 1
            if index >= len(items):
                break
            try:
                results.send((index, work(items[index])))
            except MemoryError:
                results.send((index, UserError("the host has too little memory; name a cluster by --master")))
                break
            except (UserError, OSError) as problem:
                results.send((index, problem))
                break
            except Exception as problem:  # a fault of ours
                results.send((index, RuntimeError(f"{type(problem).__name__}: {problem}")))
                break
        results.send((None, cells()))


def _gathered(count: int, pipes: list[Connection]) -> list[Any]:
    """Receives the results of all copies. Raises the first problem in the order of the items."""
    results: dict[int, Any] = {}
    working = list(pipes)
    while working:
        for pipe in wait(working):
            assert isinstance(pipe, Connection)
            try:
                index, result = pipe.recv()
            except EOFError:
                raise UserError(
                    "a process of ours was killed, most likely for lack of memory; "
                    "give the host more, or name a cluster by --master"
                ) from None
            if index is None:
                metrics.merge(result)
                working.remove(pipe)
            else:
                results[index] = result
    for index in sorted(results):
        if isinstance(results[index], UserError | OSError | RuntimeError):
            raise results[index]
    return [results[index] for index in range(count)]


#: names in glibc's malloc.h
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: the second is the largest mapping threshold that an older glibc accepts
_KEPT_BYTES, _KEPT_BEFORE = 1 << 30, 1 << 25


@cache
def keep_pages() -> None:
    """Keeps freed memory for the next array: the system would have to map its pages again.

    For processes that make arrays of one size again and again. Does nothing where the C library is not glibc.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES) or mallopt(_MMAP_THRESHOLD, _KEPT_BEFORE)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
