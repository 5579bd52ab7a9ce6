"""The artifact store: where each artifact lies, its manifest, and its atomic publication.

    ROOT/data/<kind>/<key>/       content-addressed: the key is a hash of everything that decides the content
    ROOT/runs/<run id>/           records of one run: stages, trials, results, page

An artifact exists iff its directory holds manifest.json. On this machine it is built beside its final place
and renamed there as a whole. On a remote store (s3://…) it is built in a folder of its own; the manifest, written
last, names that folder. A job killed at any moment therefore leaves nothing that looks finished.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock

from streamgauge.base.canonical import canonical
from streamgauge.base.errors import Damaged, Outage, UserError
from streamgauge.base.jsonl import read_record, write_record
from streamgauge.base.places import Remote, as_user_error, is_half, may_pass, place, remove, sync
from streamgauge.catalog.manifests import DIGESTS, digests, read_manifest, sha256_of
from streamgauge.catalog.manifests import MANIFEST as MANIFEST
from streamgauge.catalog.manifests import Artifact as Artifact
from streamgauge.catalog.source_files import mark_of

OTHER_ARTIFACTS = "choose another --artifacts"
#: end of the name of a folder beside an unfinished artifact, with parts of it that are finished
KEPT = ".kept"
#: the manifest of an artifact whose data was deleted to save space (results/index/garbage_collection.py)
COLLECTED = "manifest.collected.json"
#: raise a number when the algorithm behind an artifact changes its output
ALGORITHM = {"events": 7, "profile": 8, "advice": 2, "stream": 2, "validation": 3}
log = logging.getLogger("streamgauge")
#: errors of the operating system that do not go away on their own
_MENDABLE = {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR,
    errno.EISDIR, errno.ENAMETOOLONG,
}  # fmt: skip
#: on a remote store nobody can tell whether a builder still lives: unpublished folders are kept this long (s)
_GIVEN_UP_S = 86_400.0
#: Airflow's own rule for names of runs, which become folders, and must not look like an option
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~:+-]{0,199}")


@dataclass
class Build:
    """An artifact under construction: write below path, fill the manifest."""

    path: Path
    manifest: dict[str, Any] = field(default_factory=dict)
    #: folder of what the next builder can go on with, if this one is killed; none on a remote store
    kept: Path | None = None


def key_of(kind: str, *parts: object) -> str:
    """Hash (16 hex digits) of everything that decides an artifact's content."""
    text = canonical([kind, ALGORITHM.get(kind, 0), *[json.loads(canonical(part)) for part in parts]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Finished(Exception):
    """Raised when another builder finished the artifact while this one waited."""


class Store:
    """The directory tree of all artifacts."""

    #: files of an artifact get a checksum, for those who find it later
    _lasts = True

    def __init__(self, root: str | Path) -> None:
        self.root = place(root)

    def path(self, kind: str, key: str) -> Path:
        return self.root / "data" / kind / key

    def find(self, kind: str, key: str) -> Artifact | None:
        """Returns the artifact if it is finished, else None. Raises Damaged."""
        path = self.path(kind, key)
        try:
            manifest = read_manifest(path / MANIFEST)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Artifact(kind, key, path / manifest.get("folder", "."), manifest)

    def recall(self, kind: str, key: str) -> Artifact | None:
        """Returns the finished artifact, or its manifest alone after its data was deleted; None without either."""
        path = self.path(kind, key)
        try:
            return self.find(kind, key) or Artifact(kind, key, path, read_manifest(path / COLLECTED))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def need(self, kind: str, key: str, made_by: str, *, hashed: bool = True) -> Artifact:
        """Returns the finished artifact. Raises UserError, which names the stage made_by, if there is none.

        hashed: its files are about to be read, by other processes too, hence they are hashed first. Raises Damaged.
        """
        artifact = self.find(kind, key)
        if artifact is None:
            raise UserError(f"{self.path(kind, key)}: no finished {kind} there; run the stage {made_by} first")
        if hashed:
            artifact.files()
        return artifact

    def made(self, kind: str, key: str, make: Callable[[Build], object]) -> Artifact:
        """Returns the artifact, after waiting for its builder if there is one, or builds it by make(build)."""
        if artifact := self._intact(kind, key):
            return artifact
        try:
            with self.building(kind, key) as build:
                make(build)
        except Finished:
            return self.need(kind, key, "that makes it")
        return replace(self.need(kind, key, "that makes it", hashed=False), reused=False)

    def _intact(self, kind: str, key: str, *, warn: bool = False) -> Artifact | None:
        """Returns the artifact if it is finished. A damaged one does not count on this machine: it is built anew."""
        try:
            if artifact := self.find(kind, key):
                artifact.require_intact()
            return artifact
        except Damaged as problem:
            if isinstance(self.root, Remote):
                raise
            if warn:
                log.warning("%s: %s; it is made again", problem.file, problem.what)
            return None

    @contextmanager
    def building(self, kind: str, key: str) -> Iterator[Build]:
        """Yields a Build with a fresh directory; publishes it when the block ends without an error.

        On this machine one rename publishes it, and a lock admits one builder at a time per artifact. The lock dies
        with its process, and the next builder removes what a dead one left. Raises Finished if the artifact was
        finished meanwhile, UserError or Outage if it cannot be built.
        """
        final = self.path(kind, key)
        if isinstance(final, Remote):
            with _building_there(final, kind, key) as build:
                yield build
            return
        try:
            final.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{final}.lock")
            lock.acquire()
        except OSError as problem:
            raise UserError(
                f"{final.parent}: cannot be written ({problem.strerror}); choose another --artifacts"
            ) from None
        temporary = final.with_name(f"{key}.tmp-{uuid.uuid4().hex[:8]}")
        try:
            if self._intact(kind, key, warn=True):  # others may be reading it
                raise Finished
            for leftover in final.parent.glob(f"{key}.tmp-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            temporary.mkdir()
            build = Build(temporary, kept=final.with_name(f"{key}{KEPT}"))
            yield build
            for half in temporary.rglob(".*"):  # left by a task attempt that was killed while it wrote
                if is_half(half.name):
                    half.unlink()
            checksums = {DIGESTS: digests(temporary)} if self._lasts else {}
            write_record(temporary / MANIFEST, {"kind": kind, "key": key, **build.manifest, **checksums})
            if final.exists():  # its data was deleted, or somebody removed its manifest
                shutil.rmtree(final)
            temporary.rename(final)
            sync(final.parent)
            shutil.rmtree(final.with_name(f"{key}{KEPT}"), ignore_errors=True)
        except OSError as problem:
            raise _not_built(problem, final) from problem
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            lock.release()

    def run(self, run_id: str) -> Path:
        """Directory of a run's records, created if need be. Raises UserError if it cannot be, and for a bad name."""
        if not _RUN_ID.fullmatch(run_id):
            raise UserError(
                f"run: found {run_id[:80]!r}, allowed: at most 200 letters, digits and _.~:+-, a letter or digit first"
            )
        path = self.root / "runs" / run_id
        if isinstance(path, Remote):
            path.require()
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise as_user_error(problem, path) from None
        return path

    def runs(self) -> list[Path]:
        """Directories of all runs, sorted by run id."""
        runs = self.root / "runs"
        return sorted(path for path in runs.iterdir() if path.is_dir()) if runs.exists() else []

    def require_space(self, byte_count: int, other: str = OTHER_ARTIFACTS) -> None:
        """Raises UserError if the disk has less free than byte_count, or if the remote store does not answer.

        other: says how to choose another disk.
        """
        there = self.root
        if isinstance(there, Remote):
            there.require()
            return
        while not there.exists():
            there = there.parent
        free = shutil.disk_usage(there).free
        if free < byte_count:
            raise UserError(
                f"{there}: {free / 2**20:.0f} MiB free, {byte_count / 2**20:.0f} MiB needed; free some space or {other}"
            )

    # -- keys: they follow from the inputs alone, so planning needs no Spark

    def source_fingerprint(self, files: tuple[str, ...]) -> list[dict[str, int | str]]:
        """Size and SHA-256 of each file, in declared order; hashes are cached by (path, size, mtime)."""
        cache = self._hashes()
        prints, fresh = list[dict[str, int | str]](), False
        for name in files:
            mark, size = mark_of(name)
            if mark not in cache:
                cache[mark] = sha256_of(name)
                fresh = True
            prints.append({"size": size, "sha256": cache[mark]})
        if fresh:
            try:
                self._hash_file.parent.mkdir(parents=True, exist_ok=True)
                write_record(self._hash_file, cache)
            except OSError:
                pass  # only a cache
        return prints

    def unhashed_bytes(self, files: tuple[str, ...]) -> int:
        """Number of bytes that source_fingerprint would have to read: files whose hash is not cached."""
        cache = self._hashes()
        return sum(size for mark, size in map(mark_of, files) if mark not in cache)

    @property
    def _hash_file(self) -> Path:
        return self.root / "data" / "source-hashes.json"

    def _hashes(self) -> dict[str, str]:
        try:
            return read_record(self._hash_file, "")
        except (OSError, Damaged):
            return {}


class ScratchStore(Store):
    """A store that lives for one command, in which nothing is looked up again: nothing needs a hash."""

    _lasts = False

    def source_fingerprint(self, files: tuple[str, ...]) -> list[dict[str, int | str]]:
        """Size and time of change of each file, in declared order."""
        return [{"size": size, "mark": mark} for mark, size in map(mark_of, files)]


@contextmanager
def _building_there(final: Remote, kind: str, key: str) -> Iterator[Build]:
    """Yields a Build on a remote store, in a folder of its own; publishes it when the block ends without an error.

    Any number of builders may work at once. If two end at the same time, the manifest that is written last counts.
    """
    build = Build(final / uuid.uuid4().hex[:8])
    published = False
    try:
        _sweep(final)
        yield build
        manifest = {"kind": kind, "key": key, "folder": build.path.name, **build.manifest}
        write_record(build.path / MANIFEST, manifest)
        if not (final / MANIFEST).exists():
            published = True  # before the write: it may succeed although its answer is lost
            write_record(final / MANIFEST, manifest)
    except OSError as problem:
        published = published and not _is_anothers(final, build.path.name)
        raise _not_built(problem, final) from problem
    finally:
        if not published:
            with suppress(OSError):
                remove(build.path)


def _is_anothers(final: Remote, folder: str) -> bool:
    """True if the published manifest names another folder, or there is none; False if that cannot be read."""
    try:
        return bool(read_manifest(final / MANIFEST)["folder"] != folder)
    except FileNotFoundError:
        return True
    except (OSError, Damaged, KeyError):
        return False


def _sweep(final: Remote) -> None:
    """Removes unpublished folders that were last written to so long ago that their builders must be dead."""
    newest: dict[str, float] = {}
    for file, at in final.changes().items():
        folder, *inside = file.relative_to(final).parts
        if not inside:  # published meanwhile
            return
        newest[folder] = max(newest.get(folder, 0.0), at.timestamp())
    for folder, last in newest.items():
        if time.time() - last > _GIVEN_UP_S:
            remove(final / folder)


def _not_built(problem: OSError, final: Path) -> UserError | Outage:
    """Maps a build's error to an Outage if it may pass, else to a UserError that names the output or input at fault."""
    file = str(problem.filename or "")
    if may_pass(problem) if problem.errno is None else problem.errno not in _MENDABLE:
        return Outage(f"{final}: cannot be built: {problem.strerror or problem}" + (f": {file}" if file else ""))
    elsewhere = file and not isinstance(final, Remote) and not file.startswith(str(final.parent))
    if elsewhere and problem.errno in (errno.ENOENT, errno.EACCES, errno.EPERM):
        return UserError(f"{file}: cannot be used: {problem.strerror}; jobs and their workers must reach it")
    return as_user_error(problem, Path(file) if elsewhere else final)
