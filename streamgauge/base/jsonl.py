"""Writes JSON files whole, and logs of JSON lines of which a killed writer leaves at most the last one incomplete."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from streamgauge.base.errors import Damaged
from streamgauge.base.places import Remote, remove, write_whole
from streamgauge.base.secrets import shown

SEAL = "crc32"
#: what is said of a line that append_json has not written so
EMPTY_LINE = "empty the line, and keep its end: the lines after it keep their numbers"
DAMAGED_LINE = "damaged: no JSON object, or its checksum does not match"
#: what to do about a log that is no file, or that may not be read
_MOVE = "move it away"
_STEP = 64 << 10


def sealed(record: Mapping[str, object]) -> dict[str, Any]:
    """The record with its checksum."""
    plain = _plain(record)
    return {**plain, SEAL: _checksum(plain)}


def unsealed(record: Mapping[str, object]) -> dict[str, Any]:
    """The record without its checksum, if it has one. Raises ValueError if the checksum does not match."""
    plain = _plain(record)
    if SEAL in record and record[SEAL] != _checksum(plain):
        raise ValueError("its checksum does not match")
    return plain


def _plain(record: Mapping[str, object]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != SEAL}


def _checksum(record: Mapping[str, object]) -> str:
    as_read = json.loads(json.dumps(record))  # keys are text then, whose order may be another
    # not by `canonical`, as it imports pydantic, and processes that start often read records too
    text = json.dumps(as_read, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


def write_json(path: Path, value: object) -> None:
    """Writes value as JSON; the file is replaced whole or not at all."""
    write_whole(path, (json.dumps(shown(value), indent=1, ensure_ascii=False) + "\n").encode())


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Writes a record with its checksum; the file is replaced whole or not at all."""
    write_json(path, sealed(shown(record)))


def write_records(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    """Writes a list of records, each with its checksum; the file is replaced whole or not at all."""
    write_json(path, [sealed(shown(record)) for record in records])


def read_record(path: Path, todo: str) -> dict[str, Any]:
    """Reads what write_record wrote. Raises OSError, or Damaged, which tells `todo`."""
    return _unsealed(path, _parsed(path, todo), todo)


def read_records(path: Path, todo: str) -> list[dict[str, Any]]:
    """Reads what write_records wrote. Raises OSError, or Damaged, which tells `todo`."""
    values = _parsed(path, todo)
    if not isinstance(values, list):
        raise Damaged(path, f"damaged, found {type(values).__name__}, allowed: a JSON list", todo)
    return [_unsealed(path, value, todo) for value in values]


def _parsed(path: Path, todo: str) -> Any:
    try:
        return json.loads(_bytes(path, todo).decode())
    except (ValueError, RecursionError) as problem:
        why = f"no JSON: {problem}" if isinstance(problem, json.JSONDecodeError) else str(problem)
        raise Damaged(path, f"damaged, {why}", todo) from None


def _bytes(path: Path, todo: str) -> bytes:
    """Content of a file. Raises OSError if it is missing or a store does not answer, or Damaged if it is no file."""
    try:
        return path.read_bytes()
    except OSError as problem:
        if isinstance(path, Remote) or isinstance(problem, FileNotFoundError | NotADirectoryError):
            raise
        raise Damaged(path, f"cannot be read: {problem.strerror}", todo) from None


def _unsealed(path: Path, value: object, todo: str) -> dict[str, Any]:
    try:
        if isinstance(value, dict):
            return unsealed(value)
        why = f"found {type(value).__name__}, allowed: a JSON object"
    except ValueError as problem:
        why = str(problem)
    raise Damaged(path, f"damaged, {why}", todo)


def append_json(path: Path, record: Mapping[str, object]) -> None:
    """Appends record as one line in a single write, so that a killed writer leaves at most the last line incomplete.

    The next record overwrites such a torn line, which never counted as written. A remote store cannot append, so
    each record is a file of its own there, in the directory `path`. Each record carries a checksum.
    """
    data = (json.dumps(sealed(shown(record)), ensure_ascii=False) + "\n").encode()
    if isinstance(path, Remote):
        (path / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json").write_bytes(data)
        return
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # another writer's line is torn only once that writer is dead
        end = _whole_lines(descriptor)
        if rest := os.pread(descriptor, os.fstat(descriptor).st_size - end, end):
            if _is_record(rest):  # only its newline is missing, and readers have counted it
                data = b"\n" + data
                end += len(rest)
            else:
                os.ftruncate(descriptor, end)
        if os.write(descriptor, data) < len(data):  # the disk is full: no part of a record may stay
            os.ftruncate(descriptor, end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_record(line: bytes) -> bool:
    try:
        unsealed(json.loads(line))
    except (ValueError, RecursionError, AttributeError, TypeError):  # the latter two: no object
        return False
    return True


def _whole_lines(descriptor: int) -> int:
    """Number of bytes up to the last newline."""
    end = os.fstat(descriptor).st_size
    while end:
        begin = max(0, end - _STEP)
        newline = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return 0


def log_bytes(path: Path) -> bytes:
    """Bytes that append_json or write_json wrote to path; empty if there is nothing. Raises Damaged."""
    try:
        if isinstance(path, Remote) and path.is_dir():
            return b"".join(map(_line, sorted(path.iterdir())))
        return _bytes(path, _MOVE)
    except (FileNotFoundError, NotADirectoryError):  # the latter: somebody's file among the runs
        return b""


def delete_log(path: Path) -> None:
    """Deletes what append_json or write_json wrote to path, if anything."""
    if isinstance(path, Remote):
        remove(path)
    path.unlink(missing_ok=True)


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    """Records of a JSON-lines file; a last line that is torn is skipped. Raises Damaged for any other damage."""
    records = []
    for number, record, torn in numbered_jsonl(path):
        if isinstance(record, dict):
            records.append(record)
        elif not torn:
            raise Damaged(f"{path}: line {number}", DAMAGED_LINE, "delete the line")
    return records


def numbered_jsonl(path: Path) -> Iterator[tuple[int, Any, bool]]:
    """Yields (line from 1 on, value, whether the line is a torn last one) of a JSON-lines file, without empty lines.

    The value of a damaged line is None. A line's number stays the same if another line breaks. Raises Damaged.
    """
    lines = log_bytes(path).split(b"\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                value = json.loads(line)
                yield number, unsealed(value) if isinstance(value, dict) else value, False
            except (ValueError, RecursionError):  # torn, changed, not UTF-8, nested too deep
                yield number, None, number == len(lines)


@lru_cache(maxsize=10_000)
def _line(file: Remote) -> bytes:
    """Content of one record's file of a remote log; cached, since it never changes."""
    return file.read_bytes()
