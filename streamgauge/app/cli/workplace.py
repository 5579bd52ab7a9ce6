"""Environment of a one-shot command: its processes, its scratch folder, its progress, and its end by a signal."""

from __future__ import annotations

import atexit
import errno
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from streamgauge import config
from streamgauge.app.cli import options
from streamgauge.base.errors import Stopped, UserError
from streamgauge.base.folders import temporary_folder
from streamgauge.base.live import Live, about, tell, took
from streamgauge.base.places import Remote, as_user_error, copy, place, remove
from streamgauge.base.processes import postponed, stoppable
from streamgauge.base.shipped import INSTALL
from streamgauge.catalog.artifacts import MANIFEST, Artifact, Store
from streamgauge.catalog.source_files import stat_source

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

#: True if nobody wants to see progress (--quiet)
silent = False
#: bytes of a source beyond which Spark reads it, as it spills what memory does not hold; sorting here needs all rows
_HERE_BYTES, _SORTED_HERE_BYTES = 4 << 30, 1 << 30
#: packed files and Parquet hold about so many times their size
_UNPACKED = 5
#: size of a topic's record, which nobody knows before it is read
_RECORD_BYTES = 100


def located(name: str) -> str:
    """Location of a source: a URL as it is, an absolute path, or a copy of standard input for "-"."""
    if "://" in name:
        return name
    if name != "-":
        return str(Path(name).absolute())
    if sys.stdin.isatty():
        raise UserError("-: standard input is a terminal; give it a file or a pipe")
    descriptor, copy = tempfile.mkstemp(prefix="streamgauge-standard-input-")
    atexit.register(os.unlink, copy)
    try:
        with open(descriptor, "wb") as target:  # it is read twice, and by several processes
            shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
    except OSError as problem:
        why = problem.strerror or problem
        raise UserError(f"-: standard input cannot be kept in {copy}: {why}; set TMPDIR to a larger disk") from None
    return copy


#: how a line that is a JSON object begins
_OBJECT = re.compile(rb"\{\s*(\"|\}|$)")


def format_of(file: str) -> str:
    """The format of a source, by its name or, of a file here, by its first bytes."""
    if file.endswith((".parquet", ".pq")):
        return "parquet"
    from streamgauge.streams.text import json_lines, ranges

    named = re.search(r"\.(jsonl|ndjson)(\.[a-z0-9]+)?$", file) is not None
    with suppress(OSError):
        if Path(file).is_file():  # nobody may ever write to a pipe
            begin = ranges.beginning(file)
            json_lines.refuse_array(begin, file)
            return "parquet" if begin.startswith(b"PAR1") else "jsonl" if named or _OBJECT.match(begin) else "csv"
    return "jsonl" if named else "csv"


def pinned(source: config.Source) -> config.Source:
    """The source, of a topic with the offsets that its range has now. Raises UserError."""
    if source.kafka is None:
        return source
    from streamgauge.streams.sources import topics

    with options.speaking(), progress("asking the broker"):
        return topics.pinned(source)


@contextmanager
def workers(name: str, master: str | None, store: Store, source: config.Source) -> Iterator[Workers]:
    """Yields processes of this command, or Spark's if a master is named or the source is large.

    A signal that asks the command to end interrupts the block, and raises Stopped.
    """
    from streamgauge.catalog import preflight
    from streamgauge.streams.text import splits

    if master is not None:
        from streamgauge.streams.stages.session import check_master

        check_master(master)
    if name == "analyze":  # which keeps no lines
        preflight.check_files(store, source.files, per_byte=1, other="set TMPDIR to another disk")
    else:
        preflight.check_files(store, source.files, other="choose another --out")
    with options.speaking():
        splits.source_splits(source, 1 << 40)  # finds a file that is not as described before anything starts
    of_topic = source.kafka.offsets * _RECORD_BYTES if source.kafka is not None else 0
    if source.order == "file":
        large = of_topic + sum(stat_source(file).st_size for file in source.files) > _HERE_BYTES
    else:
        large = of_topic + sum(map(_unpacked_bytes, source.files)) > _SORTED_HERE_BYTES
    try:
        if master is None and not large:
            from streamgauge.streams.stages.workers import Forked

            _without_pandas()
            with options.speaking(), stoppable():
                yield Forked()
        else:
            preflight.check_java()
            with options.speaking(), _on_spark(name, master or "local[*]") as spark:
                yield spark
    except KeyboardInterrupt:
        raise Stopped("stopped; nothing was written") from None


def _unpacked_bytes(file: str) -> int:
    """About the size of a file's rows in memory."""
    from streamgauge.streams.text.ranges import packing

    packed = file.endswith((".parquet", ".pq")) or packing(file) is not None
    return stat_source(file).st_size * (_UNPACKED if packed else 1)


class _NoPandas:
    """An import hook that hides pandas."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _without_pandas() -> None:
    """Keeps pyarrow from importing pandas, which takes half a second and swallows a signal that comes meanwhile.

    It tries once, when the first array is made, and remembers.
    """
    import pyarrow as pa

    if "pandas" in sys.modules:
        return
    hook = _NoPandas()
    sys.meta_path.insert(0, hook)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(hook)


@contextmanager
def _on_spark(name: str, master: str) -> Iterator[Workers]:
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    try:
        from streamgauge.streams.stages.session import batch_session, end, silence
        from streamgauge.streams.stages.tasks import OnSpark
    except ImportError as problem:
        raise UserError(f"PySpark is not installed here ({problem}); {INSTALL}") from None
    with postponed() as signals, progress("starting Spark"):  # a signal after the line must not find the old handler
        session = batch_session(name, master)
    try:
        with stoppable():  # once more, as Spark has put its own handler there
            if signals:
                raise KeyboardInterrupt
            yield OnSpark(session)
    except KeyboardInterrupt:
        silence(session)
        raise
    finally:
        end(session)


@contextmanager
def progress(what: str, expected_s: float | None = None, takes: str | None = None) -> Iterator[None]:
    """Shows on standard error what is being done, for how long, and about what is left: at once on a terminal.

    expected_s: how long the block is expected to take; None if nobody knows. takes: the same in more words, said first.
    """
    if silent:
        yield
        return
    began = time.monotonic()

    def state() -> str:
        passed_s = time.monotonic() - began
        if expected_s is None:
            return f"{what}, {took(passed_s)}"
        left = f"{about(expected_s - passed_s)} left" if passed_s < expected_s else "longer than estimated"
        return f"{what}, {took(passed_s)}; {left}"

    if expected_s is not None:
        tell(f"{what}: {takes or about(expected_s)}", sys.stderr)
    with Live(state, sys.stderr):
        yield


@contextmanager
def beside(out: Path) -> Iterator[Store]:
    """Yields a scratch store whose artifact `published` then moves to `out`. Raises UserError if `out` is taken.

    It lies beside `out`, so that publishing is one rename; of a remote store, it lies in the temporary folder.
    """
    target = place(out)
    if isinstance(target, Remote):
        target.require()
        if any(target.iterdir()):
            raise taken(target)
        with tempfile.TemporaryDirectory(prefix="streamgauge-") as folder:
            yield Store(Path(folder))
        return
    scratch = out.absolute().parent / f".{out.name}.tmp-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        try:
            if os.path.ismount(out):
                raise UserError(
                    f"--out {out}: found a mount point, which cannot be replaced; name a directory below it"
                )
            if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()) or out.samefile("."))):
                raise taken(out)
            stack.enter_context(temporary_folder(scratch))
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                raise UserError(
                    f"--out {str(out)[:60]}…: found {len(str(out))} characters, more than this disk allows; choose a "
                    "shorter name"
                ) from None
            raise as_user_error(problem, out) from None
        yield Store(scratch)


_THERE = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def require_writable(option: str, out: Path, files: Sequence[str] = (), *, in_place: bool = False) -> None:
    """Raises UserError, before the work, if a file cannot be written there, or is one of the source files.

    in_place: what exists is written to, be it a pipe; else a new file takes its name.
    """
    folder = out.absolute().parent
    if in_place and out.exists():
        fits, written = not out.is_dir(), [out]
    else:
        fits, written = folder.is_dir() and (out.is_file() or not out.exists()), [folder, out]
    if not (fits and all(os.access(one, os.W_OK) for one in written if one.exists())):
        raise UserError(f"{option} {out}: cannot be written; name a file in a folder of yours that exists")
    for file in files:
        with suppress(OSError):
            if "://" not in file and out.samefile(file):
                raise UserError(f"{option} {out}: is a source file, which would be lost; name another file")


def taken(out: Path) -> UserError:
    return UserError(f"--out {out}: exists already; name a directory that does not")


def published(artifact: Artifact, out: Path) -> Path:
    """Moves an artifact's files to `out`, the manifest last; returns where they are. Raises UserError."""
    target = place(out)
    if not isinstance(target, Remote):
        try:
            if out.exists():
                out.rmdir()
            artifact.path.rename(out)
        except OSError as problem:  # somebody else made it meanwhile
            raise taken(out) if problem.errno in _THERE else as_user_error(problem, out) from None
        return out
    manifest = (artifact.path / MANIFEST).read_bytes()
    (artifact.path / MANIFEST).unlink()
    try:
        copy(artifact.path, target)
        (target / MANIFEST).write_bytes(manifest)
    except BaseException as problem:
        with suppress(OSError):
            remove(target)
        if isinstance(problem, OSError):
            raise as_user_error(problem, target) from None
        raise
    return target
