"""Keeps artifacts within a disk budget by deleting data that can be made again. Results are never deleted.

Records (JSON, JSON lines, the page, a validation, a profile) stay, since results need them. The rest is deleted in
this order: leftovers of killed builders; then, of each the oldest first, working directories of runs that ended,
Spark's event logs older than a day, streams and events that the newest runs do not use. The manifest of deleted data
stays, as manifest.collected.json. While the records of a run cannot be read, no stream and no event is deleted.
"""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from streamgauge.base.errors import Damaged, UserError
from streamgauge.base.jsonl import read_record
from streamgauge.base.places import Remote
from streamgauge.catalog import results, run_summary
from streamgauge.catalog.artifacts import COLLECTED, KEPT, MANIFEST, Store
from streamgauge.catalog.claims import is_claimed
from streamgauge.catalog.manifests import read_manifest
from streamgauge.catalog.run_log import RunLog

log = logging.getLogger("streamgauge")
#: where working directories lie in a run: its own, and those of its cells
_WORK = ("work", "cells/*/work")
#: folder in which Spark in our images leaves its event logs (docker/spark), and the age (s) at which they may go
_SPARK_EVENTS, _EVENTS_S = "spark-events", 86_400.0
#: seconds after its last record in which a run may still be going on: normally, and with a stage that has not ended
_QUIET_S, _GIVEN_UP_S = 3600.0, 86_400.0


@dataclass(frozen=True)
class Item:
    path: Path
    bytes: int
    why: str


@dataclass(frozen=True)
class Collected:
    removed: list[Item]
    bytes_before: int
    bytes_after: int
    problems: list[str]  # why runs cannot be read, for which all data was kept


@dataclass(frozen=True)
class _Candidate:
    """Path that may be deleted."""

    path: Path
    why: str
    always: bool = False  # even within the budget
    artifact: Path | None = None  # to which it belongs, or which it is; nobody may be building that


@dataclass(frozen=True)
class _Run:
    """A run with the keys of the data that it used."""

    path: Path
    last: float  # time of its last record
    is_over: bool
    benchmark: str  # empty if it measured nothing
    keys: frozenset[str]


def collect(store: Store, budget: int, *, keep_runs: int, dry_run: bool = False) -> Collected:
    """Deletes leftovers always, other items only while the artifacts exceed the budget (bytes)."""
    before = now = size_of(store.root)
    runs, problems = run_summary.of_each(store.runs(), _read)
    for why in problems.values():
        log.warning("%s; until then all streams and events are kept, as that run may need them", why)
    removed = []
    oldest_first = sorted(runs.values(), key=lambda run: run.last)
    for one in _candidates(store, oldest_first, keep_runs, data=not problems):
        if now <= budget and not one.always:
            continue
        item = Item(one.path, size_of(one.path), one.why)
        if _remove(one, dry_run=dry_run):
            removed.append(item)
            now -= item.bytes
    return Collected(removed, before, now if dry_run else size_of(store.root), list(problems.values()))


def require_budget(store: Store, budget: int, *, keep_runs: int) -> None:
    """Makes room before a run. Raises UserError if what is left exceeds the budget (bytes).

    It does nothing on a remote store, which has no disk of ours.
    """
    if isinstance(store.root, Remote):
        return
    collected = collect(store, budget, keep_runs=keep_runs)
    if collected.bytes_after > budget:
        kept = f"; all streams and events were kept, because of {collected.problems[0]}" if collected.problems else ""
        raise UserError(
            f"{store.root}: artifacts take {collected.bytes_after / 2**20:.0f} MiB after collection, budget "
            f"{budget / 2**20:.0f} MiB; raise retention.disk_budget, or keep fewer runs{kept}"
        )


def size_of(path: Path) -> int:
    """Bytes on disk of a file, or of all files below a directory; those that vanish meanwhile are not counted."""
    total = 0
    for folder, _, files in os.walk(path) if path.is_dir() else [("", (), (str(path),))]:
        for name in files:
            with suppress(OSError):
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return total


def _candidates(store: Store, runs: Sequence[_Run], keep_runs: int, *, data: bool) -> Iterator[_Candidate]:
    """Yields what may be deleted, in order. runs: oldest first. data: False keeps all streams and events."""
    yield from _leftovers(store.root / "data")
    for run in runs:
        for path in sorted(p for place in _WORK for p in run.path.glob(place)) if run.is_over else ():
            yield _Candidate(path, "working files of a run that ended")
    logs = _changed((store.root / _SPARK_EVENTS).glob("*"))
    for path in sorted(logs, key=logs.__getitem__):
        if time.time() - logs[path] > _EVENTS_S:
            yield _Candidate(path, "Spark's event log")
    kept = {key for run in _keeping(runs, keep_runs) for key in run.keys}
    used = {key: run.last for run in runs for key in run.keys}  # by several: the newest, which comes last
    for kind in ("stream", "events") if data else ():
        built_at = {p.parent: t for p, t in _changed((store.root / "data" / kind).glob(f"*/{MANIFEST}")).items()}
        for path in sorted(built_at, key=lambda p: max(used.get(p.name, 0.0), built_at[p])):
            # a builder's folder has a manifest, too, just before it gets its name
            if ".tmp-" not in path.name and path.name not in kept and _can_be_made_again(store, path):
                yield _Candidate(path, f"{kind}, can be made again", artifact=path)


def _keeping(runs: Sequence[_Run], keep_runs: int) -> Iterator[_Run]:
    """Yields runs that keep their data: the newest of each benchmark, and those that may be going on."""
    counts: Counter[str] = Counter()
    for run in reversed(runs):
        counts[run.benchmark] += bool(run.keys)  # a run of imported figures has no data
        if counts[run.benchmark] <= keep_runs or not run.is_over:
            yield run


def _leftovers(data: Path) -> Iterator[_Candidate]:
    """Yields what killed builders and collections left, for `_candidates`."""
    for path in sorted(data.glob("*/*.tmp-*")):
        yield _Candidate(path, "leftover of a killed builder", always=True, artifact=path.with_suffix(""))
    for path in sorted(data.glob(f"*/*{KEPT}")):
        artifact = path.with_suffix("")
        is_finished = (artifact / MANIFEST).exists()  # nobody goes on with the pieces
        yield _Candidate(path, "finished pieces of what a killed builder made", is_finished, artifact)
    for manifest in sorted(data.glob(f"*/*/{COLLECTED}")):
        if len(os.listdir(path := manifest.parent)) > 1 and not (path / MANIFEST).exists():
            yield _Candidate(path, "leftover of a killed collection", always=True, artifact=path)


def _changed(paths: Iterable[Path]) -> dict[Path, float]:
    """Maps each path to its mtime; those that vanish meanwhile (renamed by Spark, deleted by another) are left out."""
    changed = {}
    for path in paths:
        with suppress(FileNotFoundError):
            changed[path] = path.stat().st_mtime
    return changed


def _read(path: Path) -> _Run:
    """Reads what decides about a run's data. Raises UserError if that is unknown."""
    stages, (figures, problems) = RunLog(path).stages(), results.numbered(path)
    if problems and not figures:
        raise problems[0]
    last = max(_changed(path.glob("**/*.jsonl")).values(), default=path.stat().st_mtime)
    quiet_s = _GIVEN_UP_S if any(stage.state == "started" for stage in stages) else _QUIET_S
    return _Run(
        path,
        last,
        is_over=time.time() - last > quiet_s and not is_claimed(path),  # a soak of days writes no record
        benchmark=figures[0][1].benchmark if figures else "",
        keys=frozenset(stage.key for stage in stages if stage.key),
    )


def _can_be_made_again(store: Store, path: Path) -> bool:
    """True if the data can be made again: a stream from its events, events from source files that are unchanged."""
    try:
        manifest = read_manifest(path / MANIFEST)
        if "events_key" in manifest:
            events = store.path("events", manifest["events_key"])
            if (events / MANIFEST).exists():
                return True
            manifest = read_manifest(events / COLLECTED)
        sources = manifest.get("sources", [])
        known = read_record(store.root / "data" / "source-hashes.json", "") if sources else {}
    except (OSError, ValueError, Damaged):
        return False
    there = {digest for mark, digest in known.items() if _unchanged(mark)}
    return all(source.get("sha256") in there for source in sources)  # nobody knows what a topic still has


def _unchanged(mark: str) -> bool:
    """True if the file of a mark (path:size:mtime, see artifacts.Store.source_fingerprint) is unchanged."""
    name, size, changed = mark.rsplit(":", 2)
    try:
        stat = os.stat(name)
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (int(size), int(changed))


def _remove(one: _Candidate, *, dry_run: bool) -> bool:
    """Deletes it, unless that is only tried; True if nobody was at work on it, and no data is left.

    The manifest of data stays under another name. It is renamed first, so that half-deleted data never counts as data.
    """
    lock: AbstractContextManager[object] = nullcontext()
    if one.artifact is not None:
        lock = FileLock(f"{one.artifact}.lock", timeout=0)
    try:
        with lock:
            if dry_run:
                return True
            if one.path != one.artifact:
                return _gone(one.path)
            if not one.always:
                os.replace(one.path / MANIFEST, one.path / COLLECTED)
            elif (one.path / MANIFEST).exists():  # it was built anew meanwhile
                return False
            return all(_gone(inside) for inside in one.path.iterdir() if inside.name != COLLECTED)
    except OSError:
        return False


def _gone(path: Path) -> bool:
    """Deletes a file or a folder; True if nothing of it is left."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return not path.exists()
