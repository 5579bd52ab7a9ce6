"""Measures events as they are in their files, from the Parquet files that ingest has just written, with hints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from streamgauge.descriptions.source import Source
from streamgauge.records.profile import InFile
from streamgauge.streams.disorder.blocks import Blocks
from streamgauge.streams.disorder.definitions import Times
from streamgauge.streams.disorder.hints import Place, Skipped
from streamgauge.streams.disorder.looking import Origin, in_file
from streamgauge.streams.disorder.row_groups import column_array, read, read_times, row_groups
from streamgauge.streams.stages.workers import Workers

T = TypeVar("T")
#: so many row groups are read sooner by this process than by tasks that are yet to start
_FEW = 8


class _Tasks:
    """A walk in tasks. A task has a copy that holds nothing, as it starts no tasks and cannot have the workers."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def __call__(self, work: Callable[[int], T], numbers: Sequence[int]) -> list[T]:
        if len(numbers) <= _FEW:
            return [work(number) for number in numbers]
        return self._workers.each(numbers, work)

    def __getstate__(self) -> None:
        return None


def measure(
    workers: Workers, files: Sequence[Path], source: Source, places: Sequence[Place], skipped: Skipped
) -> InFile:
    """Measures the events of these files, given in the order of the source, in flat memory."""
    groups = row_groups(files)

    def times(number: int) -> Times:
        return read_times([groups[number]])

    def seqs(number: int) -> Times:
        return column_array(read([groups[number]], ["seq"]), "seq")

    origin = Origin(source.tick, source.time, tuple(places), source.line_word, skipped)
    return in_file(Blocks(groups, times, seqs, _Tasks(workers)), origin)
