"""Paths on this machine and on any remote store that pyarrow reaches, such as s3://, gs:// or hdfs://.

A Remote is named and read like a Path. Remote stores have no append, no lock, and many have no rename, so nothing
relies on these: a file appears whole, under a name of its own, and counts once a manifest names it.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import re
import shutil
import stat
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PosixPath
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from streamgauge.base.answering import answered, short
from streamgauge.base.errors import UserError
from streamgauge.base.secrets import names_user

#: variables that tell Python workers on other hosts where the store is; each host has credentials of its own
ENVIRONMENT = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION")
#: limits of the client of S3: attempts, and seconds to connect and to answer
_ATTEMPTS, _CONNECT_S, _ANSWER_S = 3, 3.0, 60.0
_READ_BYTES = 4 << 20
_URI = re.compile(r"([a-z][a-z0-9+.-]+):/+(.+)")  # pathlib merges two slashes into one
#: object stores: a file appears whole when it is closed, and writing it again replaces it whole
_OBJECTS = ("s3", "gcs", "abfs")


class Remote(PosixPath):
    """A path scheme://host/path on a remote store. Its methods raise OSError if the store refuses."""

    def __str__(self) -> str:
        scheme, *rest = self.parts or ("",)
        return f"{scheme}//{'/'.join(rest)}" if scheme.endswith(":") else "/".join(self.parts)

    def __fspath__(self) -> str:
        """Raises UserError, so that code for local files never takes a remote name for a local one."""
        raise UserError(f"{self}: this needs a directory of this machine, found a store; choose another --artifacts")

    def at(self) -> tuple[fs.FileSystem, str]:
        """(file system, this path's name in it)."""
        scheme, host, *rest = self.parts
        filesystem, base = _store(scheme.removesuffix(":"), host)
        return filesystem, posixpath.join(base, *rest)

    def info(self) -> fs.FileInfo:
        """The file's entry in its store. Raises OSError if the store refuses, or says nothing for too long."""
        return answered(str(self), self._info)

    def _info(self) -> fs.FileInfo:
        filesystem, name = self.at()
        return filesystem.get_file_info(name)

    def absolute(self) -> Remote:
        return self

    def resolve(self, *_: object, **__: object) -> Remote:
        return self

    def exists(self, **_: object) -> bool:
        return bool(self.info().type != fs.FileType.NotFound)

    def is_dir(self, **_: object) -> bool:
        return bool(self.info().type == fs.FileType.Directory)

    def mkdir(self, *_: object, **__: object) -> None:
        """Does nothing: a remote store has files only."""

    def changes(self) -> dict[Remote, datetime]:
        """Maps each file below this path to the time when it was last written."""
        filesystem, name = self.at()
        files = filesystem.get_file_info(fs.FileSelector(name, allow_not_found=True, recursive=True))
        return {self / posixpath.relpath(one.path, name): one.mtime for one in files if one.is_file}

    def iterdir(self) -> Generator[Remote, None, None]:
        filesystem, name = self.at()
        for one in filesystem.get_file_info(fs.FileSelector(name, allow_not_found=True)):
            yield self / one.base_name

    def glob(self, pattern: str, **_: object) -> Generator[Remote, None, None]:
        """Yields matching names in this folder. Raises UserError for a pattern with a slash."""
        if "/" in pattern:
            os.fspath(self)
        yield from (child for child in self.iterdir() if fnmatchcase(child.name, pattern))

    def read_bytes(self) -> bytes:
        filesystem, name = self.at()
        with filesystem.open_input_stream(name, compression=None) as source:
            return bytes(source.read())

    def read_text(self, *_: object, **__: object) -> str:
        return self.read_bytes().decode()

    def write_bytes(self, data: Any) -> int:
        """Writes the file whole; returns the number of bytes. On hdfs://, a kill may leave no file."""
        filesystem, name = self.at()
        written = name if filesystem.type_name in _OBJECTS else f"{name}.{uuid.uuid4().hex[:8]}"
        with filesystem.open_output_stream(written, compression=None) as sink:
            sink.write(data)
        if written != name:
            self.unlink(missing_ok=True)
            filesystem.move(written, name)
        return len(data)

    def unlink(self, missing_ok: bool = False) -> None:
        filesystem, name = self.at()
        try:
            filesystem.delete_file(name)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def require(self) -> None:
        """Raises UserError, after FIRST_ANSWER_S at the latest, if the store is silent or has no such bucket."""
        bucket = type(self)(*self.parts[:2])
        try:
            there = bucket.exists()
        except OSError as problem:
            where = "AWS_ENDPOINT_URL, AWS_REGION and" if self.parts[0] == "s3:" else "its address and"
            raise UserError(
                f"{self}: the store does not answer ({short(problem)}); check {where} the credentials"
            ) from None
        if not there:
            raise UserError(f"{bucket}: no such bucket; create it, or choose another --artifacts or --out")


@lru_cache(maxsize=16)
def _store(scheme: str, host: str) -> tuple[fs.FileSystem, str]:
    if scheme in ("s3", "s3a"):
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        retry = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
        return fs.S3FileSystem(
            endpoint_override=endpoint,
            connect_timeout=_CONNECT_S,
            request_timeout=_ANSWER_S,
            retry_strategy=retry,
            allow_delayed_open=True,  # one request for a small file
        ), host
    try:
        filesystem, base = fs.FileSystem.from_uri(f"{scheme}://{host}/")
    except (OSError, pa.ArrowException) as problem:
        raise UserError(
            f"{scheme}://{host}: cannot be reached ({short(problem)}); allowed: a path, s3://, gs://, hdfs://"
        ) from None
    return filesystem, base


def place(name: str | Path) -> Path:
    """Absolute local path, or Remote for a URI. Raises UserError for a URI with a user part."""
    if isinstance(name, Remote):
        return name
    uri = _URI.fullmatch(str(name))
    if uri is None:
        return Path(name).absolute()
    if names_user(str(name)):
        raise UserError(f"{name}: found a user part, allowed: credentials of the environment; see docs/security.md")
    return Path("/", uri[2]) if uri[1] == "file" else Remote(f"{uri[1]}:", uri[2])


def here(path: Path) -> Path:
    """Local directory for what a remote store cannot keep: logs, databases, working files.

    That is path itself if it is local, else a folder below ./artifacts.
    """
    return (
        Path("artifacts", *(part.rstrip(":") for part in path.parts)).absolute() if isinstance(path, Remote) else path
    )


def opened(name: str | Path) -> str | pa.NativeFile:
    """A file in a form that pyarrow's readers accept: a local path, or an open input file."""
    if isinstance(file := place(name), Remote):
        filesystem, there = file.at()
        return filesystem.open_input_file(there)
    return str(file)


def reading(name: str | Path) -> io.BufferedReader:
    """Opens a file for reading bytes, as open(name, "rb") does."""
    file = opened(name)
    return open(file, "rb") if isinstance(file, str) else io.BufferedReader(file, _READ_BYTES)


class Status(NamedTuple):
    st_size: int
    st_mtime_ns: int


def status(name: str | Path) -> Status:
    """Size and mtime of a regular file. Raises OSError, such as FileNotFoundError or IsADirectoryError."""
    path = place(name)
    if isinstance(path, Remote):
        info = path.info()
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        if not info.is_file:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return Status(info.size, info.mtime_ns)
    there_is = os.stat(path)
    _require_regular(there_is.st_mode, path)
    return Status(there_is.st_size, there_is.st_mtime_ns)


def small_text(path: Path, encoding: str = "utf-8", most_bytes: int = 64 << 20) -> str:
    """Text of a small file here. Raises UnicodeDecodeError, and OSError also for a device, which may have no end, a
    pipe, which would wait for a writer, or a larger file.
    """
    there_is = os.stat(path)
    _require_regular(there_is.st_mode, path)
    if there_is.st_size > most_bytes:
        raise OSError(errno.EFBIG, f"found {there_is.st_size:,} bytes, allowed: up to {most_bytes:,}", str(path))
    return path.read_text(encoding=encoding)


def text_of_user(path: Path) -> str:
    """Text of a small file that a user names. Raises UserError if there is none, or none that can be read as UTF-8."""
    try:
        return small_text(path, "utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "not UTF-8 text"
        raise UserError(f"{path}: cannot be read: {reason}") from None


def _require_regular(mode: int, path: Path) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a device or a pipe, allowed: a regular file", str(path))


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary file, which takes the place of path once the block has ended without an error."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # such as a device, which a renamed file would replace
        raise UserError(f"{path}: is not a regular file; name a file in a folder of yours")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def is_half(name: str) -> bool:
    """True if the name is that of a temporary file, which was never finished (see _replacing)."""
    return re.fullmatch(r"\..+\.[0-9a-f]{8}", name) is not None


@contextmanager
def publishing(path: Path) -> Iterator[tuple[str, pa.NativeFile]]:
    """Yields a file's name and a sink for its bytes; the file is whole, even if others write it too.

    On this machine the last of several attempts wins; on a remote store each attempt has a name of its own.
    """
    name = path.name if not isinstance(path, Remote) else f"{path.stem}-{uuid.uuid4().hex[:8]}{path.suffix}"
    if isinstance(path, Remote):
        filesystem, there = path.with_name(name).at()
        with filesystem.open_output_stream(there, compression=None) as sink:
            yield name, sink
        return
    with _replacing(path) as temporary, pa.OSFile(str(temporary), "wb") as sink:
        yield name, sink


def publish(path: Path, write: Callable[[pa.NativeFile], object]) -> str:
    """Writes a file by write(sink) and returns its name, as `publishing` does."""
    with publishing(path) as (name, sink):
        write(sink)
    return name


def write_whole(path: Path, data: bytes) -> None:
    """Replaces a file whole or not at all."""
    if isinstance(path, Remote):
        path.write_bytes(data)
        return
    with _replacing(path) as temporary, open(temporary, "wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())


def remove(path: Path) -> None:
    """Removes a directory with all below it, if it exists."""
    if isinstance(path, Remote):
        filesystem, name = path.at()
        with suppress(FileNotFoundError):
            filesystem.delete_dir(name)
    else:
        shutil.rmtree(path, ignore_errors=True)


def copy(source: Path, target: Path) -> None:
    """Copies a directory's files to another directory."""
    (from_store, from_name), (to_store, to_name) = (
        place.at() if isinstance(place, Remote) else (fs.LocalFileSystem(), str(place)) for place in (source, target)
    )
    target.mkdir(parents=True, exist_ok=True)
    fs.copy_files(from_name, to_name, from_store, to_store, use_threads=False)


@contextmanager
def workspace(path: Path) -> Iterator[Path]:
    """Yields a local directory; its files are in path once the block has ended without an error."""
    if not isinstance(path, Remote):
        yield path
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch)
        copy(Path(scratch), path)


def may_pass(problem: OSError) -> bool:
    """True for an error of a store, which has no number, that may pass, such as a connection that broke."""
    words = "NETWORK_CONNECTION|SLOW_DOWN|UNAVAILABLE|INTERNAL_FAILURE|TIMEOUT|curlCode"
    return re.search(words, str(problem)) is not None


def as_user_error(problem: OSError, where: Path) -> UserError:
    """A one-line UserError for a failed write: a full or forbidden disk is for the user to fix."""
    # Arrow's messages are long; those of a remote store say more than the error number
    known = None if isinstance(where, Remote) else problem.errno
    said = os.strerror(known) if known else " ".join(str(problem.strerror or problem).split())
    todo = "free space or choose" if known in (None, errno.ENOSPC, errno.EDQUOT) else "choose"
    return UserError(f"{where}: cannot be written: {said}; {todo} another --artifacts, --out or --output")


def sync(directory: Path) -> None:
    """Flushes a directory's entries to disk, so that they survive a crash of the machine."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
