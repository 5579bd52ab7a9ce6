"""Reads files as newline-aligned byte ranges, or as blocks of whole lines if they are compressed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import BinaryIO, cast

import numpy as np

from streamgauge.base.errors import UserError
from streamgauge.base.places import reading

BOM = b"\xef\xbb\xbf"
_STEP = 4 << 20
#: bytes of the longest line that is an event. Readers cut a longer one one byte beyond, so that parse() can tell
LONGEST_LINE = 16 << 20


def is_gzip(path: str) -> bool:
    with reading(path) as handle:
        return handle.read(2) == b"\x1f\x8b"


def first_line(path: str) -> tuple[int, bytes]:
    """(byte at which the first line begins, after a BOM; that line with its newline); a gzip file is unpacked."""
    with _opened(path) as handle:
        data = handle.read(3)
        start = 3 if data == BOM else 0
        data = data[start:] + handle.readline(_STEP) if b"\n" not in data[start:] else data[start:]
    line, newline, _ = data.partition(b"\n")
    if not newline and len(line) >= _STEP:
        raise UserError(f"{path}: no line end in the first {_STEP >> 20} MiB; name a file of text lines")
    return start, line + newline


def splits(start: int, end: int, step: int) -> list[tuple[int, int]]:
    """Cuts [start, end) into ranges [low, high) of `step` bytes; the last may be shorter."""
    return [(at, min(at + step, end)) for at in range(start, end, step)]


def read_lines(path: str, start: int, low: int, high: int) -> bytes:
    """The lines whose first byte lies in [low, high); the file's first line begins at `start`.

    They are whole, but for one beyond LONGEST_LINE: memory is bounded by high - low and that.
    """
    with reading(path) as handle:
        low, end = _aligned(handle, start, low), _aligned(handle, start, high)
        handle.seek(low)
        most = max(high, low) + LONGEST_LINE
        return _read(handle, end - low) if end <= most else _read(handle, most + 1 - low) + b"\n"


def count_lines(path: str, start: int, low: int, high: int) -> int:
    """Number of lines that read_lines would give, counted in bounded memory."""
    with reading(path) as handle:
        low, high = _aligned(handle, start, low), _aligned(handle, start, high)
        handle.seek(low)
        count, last = 0, b"\n"
        while low < high and (data := handle.read(min(_STEP, high - low))):
            count += data.count(b"\n")
            low += len(data)
            last = data[-1:]
    return count + (last != b"\n")


def blocks(path: str, start: int, size: int) -> Iterator[bytes]:
    """Yields lines of a gzip file from its unpacked byte `start` on, about `size` bytes at a time.

    They are whole, but for those beyond LONGEST_LINE.
    """
    with _opened(path) as handle:
        _read(handle, start)
        rest = b""
        while data := handle.read(size):
            cut = data.rfind(b"\n") + 1
            if cut:
                kept = data.find(b"\n") if len(rest) > LONGEST_LINE else 0
                yield rest + data[kept:cut]
                rest = data[cut:]
            elif len(rest) <= LONGEST_LINE:
                rest += data
            if len(rest) > LONGEST_LINE:
                rest = rest[: LONGEST_LINE + 1]
        if rest:
            yield rest


def line_count(data: bytes) -> int:
    return data.count(b"\n") + (data[-1:] not in (b"\n", b""))


def first_lines(data: bytes, count: int) -> bytes:
    """The first `count` lines of data, which must hold as many."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    return data[: int(ends[count - 1]) + 1]


def ended(data: bytes) -> bytes:
    """The lines as they are; a last line without a newline gets one."""
    return data + b"\n" if data and data[-1:] != b"\n" else data


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading bytes, unpacked if it is gzip. Raises UserError if the gzip file is broken."""
    try:
        packed = is_gzip(path)
        with reading(path) as handle, gzip.GzipFile(fileobj=handle) if packed else nullcontext(handle) as opened:
            yield cast(BinaryIO, opened)
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise UserError(f"{path}: broken gzip file: {problem}; fetch it again") from None


def _read(handle: BinaryIO, count: int) -> bytes:
    """Reads count bytes, fewer only at the file's end; a single raw read may give fewer."""
    data = handle.read(count)
    while data and len(data) < count and (more := handle.read(count - len(data))):
        data += more
    return data


def _aligned(handle: BinaryIO, start: int, at: int) -> int:
    """The first byte at or after `at` that begins a line, or the end of the file."""
    if at <= start:
        return start
    at -= 1
    handle.seek(at)
    while data := handle.read(64 << 10):
        found = data.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(data)
    return at
