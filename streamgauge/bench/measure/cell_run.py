"""Runs a measurement of a cell: gives its stage the cell, the measuring lock, and a place for its figures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from streamgauge.base import secrets
from streamgauge.base.canonical import canonical
from streamgauge.base.environment import Software, environment
from streamgauge.base.errors import UserError
from streamgauge.base.places import here
from streamgauge.bench.measure.cell import ReadyCell, ready
from streamgauge.bench.measure.lock import measuring
from streamgauge.bench.measurements import MEASUREMENTS, Section, function_of, package_of
from streamgauge.bench.measurements.search.record import SearchAnswer
from streamgauge.catalog import results
from streamgauge.catalog.artifacts import Store
from streamgauge.catalog.run_summary import search_of
from streamgauge.config import Benchmark, Cell
from streamgauge.config.sections import checked_section
from streamgauge.records.result import Result
from streamgauge.streams.keys import stream_key

#: facts in the log of stages that the stage itself tells, or that others read as such
_OWN_FACTS = "artifact, key, python_cpu_seconds, reused, settings, spark, system"
#: version of the search: what an earlier one measured is not gone on with
_SEARCH = 2
_FACT = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True)
class CellRun:
    """Cell of a run, as the stage of a measurement gets it."""

    benchmark: Benchmark
    store: Store
    cell: Cell
    run_directory: Path
    measurement: str = ""  # whose stage it is

    @property
    def directory(self) -> Path:
        return self.run_directory / "cells" / self.cell.name

    @contextmanager
    def ready(self, expected_s: float) -> Iterator[tuple[ReadyCell, int]]:
        """Yields the cell with its driver and its system, and the token of the measuring lock, which it waits for.

        expected_s: how long the measurement takes, for those who wait then.
        """
        with self.locked(expected_s) as token, self.started() as bench:
            yield bench, token

    def locked(self, expected_s: float) -> AbstractContextManager[int]:
        """Waits for the measuring lock, and holds it."""
        return measuring(f"{self.run_directory} {self.cell.name}", expected_s=expected_s)

    def started(self, others: Sequence[Cell] = ()) -> AbstractContextManager[ReadyCell]:
        """Yields the cell under a lock that is held. others: cells that share its system (`ready`)."""
        self.directory.mkdir(parents=True, exist_ok=True)
        return ready(self.benchmark, self.store, self.cell, here(self.directory) / "work", others=others)

    @property
    def _settings(self) -> str:
        section = self.benchmark.sections.get(self.measurement)
        is_own = section is not None and self.measurement not in Benchmark.model_fields
        own = checked_section(self.measurement, section) if section is not None and is_own else None
        return settings_hash(self.benchmark, self.cell, own, self.measurement)

    @property
    def plan_key(self) -> str:
        """Hash (16 hex digits) of its settings and its stream: measurements with another hash are not resumed."""
        stream = stream_key(self.store, self.benchmark, self.benchmark.experiment(self.cell.experiment))
        return hashlib.sha256(f"{_SEARCH} {self._settings} {stream}".encode()).hexdigest()[:16]

    def searched(self) -> SearchAnswer:
        """The record of the cell's search in this run. Raises OSError, or UserError if it had other settings."""
        answer = search_of(self.directory)
        if answer.plan != replace(self, measurement="").plan_key:
            raise UserError(f"{self.cell.name}: its search in this run had other settings; run the stage search again")
        return answer

    @property
    def result(self) -> partial[Result]:
        """Makes a result of the cell, from a metric, its unit, its value, and what else is known of it.

        A first look is a mode of its own, hence other series: its figures would look like a change among careful ones.
        """
        cell, run_id, mode = self.cell, self.run_directory.name, "quick" if self.benchmark.quick else "streaming"
        names = (self.benchmark.name, cell.experiment, cell.workload, cell.system, mode)
        return partial(Result, *names, run_id=run_id, config_hash=self._settings, replaces=True)

    def keep(
        self,
        metric: str,
        unit: str,
        value: float | None,
        *,
        interval: tuple[float, float] | None = None,
        samples: int = 1,
        void: str = "",
        remark: str = "",
        software: Mapping[str, str | None] | None = None,
    ) -> None:
        """Appends a figure to the results of the run, which the index collects.

        interval: within which it lies. void: why it does not count. remark: what else to know, such as that fewer
        trials count than were asked for. software: versions of the measured system, which may be others than ours.
        Raises UserError for an interval without the value.
        """
        low, high = interval or (None, None)
        if interval and not (value is not None and interval[0] <= value <= interval[1]):
            raise UserError(f"{self.measurement}: {metric}: found the interval {interval}, allowed: one around {value}")
        versions: Software = {**environment().software, **(software or {})}
        about = {"samples": samples, "valid": not void, "reason": void or remark, "software": versions}
        results.append(self.run_directory, self.result(metric, unit, value, low=low, high=high, **about))


def settings_hash(benchmark: Benchmark, cell: Cell, own: Section | None = None, measurement: str = "") -> str:
    """Hash (16 hex digits) of the settings that decide a cell's trials, with *** for secrets.

    own: the section of a package whose figures are hashed.

    It stands in records that others read, where the hash of a short secret could be guessed.
    """
    system = benchmark.system(cell.system)
    decides = {key: one for key, one in system.model_dump(mode="json").items() if system.decides(key, measurement)}
    parts = [
        benchmark.source, benchmark.scale, benchmark.experiment(cell.experiment), benchmark.workload(cell.workload),
        decides, benchmark.replay, benchmark.search,
        *([own] if own else []),
    ]  # fmt: skip
    settings = secrets.masked([json.loads(canonical(part)) for part in parts])
    return hashlib.sha256(canonical(settings).encode()).hexdigest()[:16]


def measure(name: str, cell_run: CellRun) -> Mapping[str, object]:
    """Measures a cell by the measurement of that name; returns facts for the log of stages. Raises UserError."""
    cell_run = replace(cell_run, measurement=name)
    section = cell_run.benchmark.sections.get(name)
    if section is None:
        raise UserError(f"{name}: the benchmark file has no section of this name; add one, such as {name}: {{}}")
    is_own = MEASUREMENTS.outside(name) is None
    with suppress(FileNotFoundError):
        if not is_own:  # it follows the search
            cell_run.searched()
    facts = function_of(package_of(name).measure, name)(cell_run, checked_section(name, section))
    return cast(Mapping[str, object], facts) if is_own else _checked(name, facts)


def _checked(name: str, facts: object) -> Mapping[str, object]:
    """Returns a package's facts. Raises UserError for what the log cannot hold, and for the stage's own keys."""
    place = f"{name}: {package_of(name).measure}"
    if not isinstance(facts, Mapping):
        raise UserError(f"{place} returned {type(facts).__name__}, allowed: a mapping of facts, such as {{}}")
    if own := sorted({*_OWN_FACTS.split(", ")} & {*facts}):
        raise UserError(f"{place} returned the key {own[0]}, allowed: none of {_OWN_FACTS}")
    checked: dict[str, object] = {}
    for key, value in facts.items():
        try:
            checked |= _FACT.validate_python({key: value}, strict=True)
        except ValidationError:
            raise UserError(
                f"{place} returned {key!r}: {type(value).__name__}, allowed: JSON, which is text, numbers of Python, "
                "true, false, null, and lists and objects of them, by keys of text"
            ) from None
    return checked
