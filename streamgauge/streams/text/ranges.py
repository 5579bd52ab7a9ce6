"""Reads files as newline-aligned byte ranges, or as blocks of whole lines if they are compressed."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import BinaryIO, Literal, NamedTuple, cast

import pyarrow as pa
from isal import igzip_threaded, isal_zlib

from streamgauge.base.errors import UserError
from streamgauge.base.lines import first_lines, line_count
from streamgauge.base.places import reading

Packing = Literal["gzip", "bzip2", "zstd"]
BOM = b"\xef\xbb\xbf"
_STEP = 4 << 20
#: bytes after the first line in which line ends are looked at
_LOOK = 64 << 10
#: bytes of the longest line that is an event. Readers cut a longer one one byte beyond, so that parse() can tell
LONGEST_LINE = 16 << 20


#: first bytes of a file -> how it is packed
_PACKED: dict[bytes, Packing] = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd"}


def packing(path: str) -> Packing | None:
    """Compression of a file, by its first bytes; None if it is not compressed."""
    with reading(path) as handle:
        begin = handle.read(4)
    return next((kind for magic, kind in _PACKED.items() if begin.startswith(magic)), None)


class First(NamedTuple):
    """The first line of a file's text."""

    start: int  # byte at which it begins, after a BOM and comments
    line: bytes  # with its newline
    number: int  # 1-based


def first_line(path: str, comment: str | None = None) -> First:
    """The first line that is no comment; a packed file is unpacked. Raises UserError for what is no text of lines."""
    number = 1
    with _opened(path) as handle:
        begin = _read(handle, 4)
        if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0\0" in (begin[::2], begin[1::2]):
            raise UserError(
                f"{path}: line 1: its text is UTF-16 or UTF-32, or no text, allowed: UTF-8; convert it, as by: "
                "iconv -f UTF-16 -t UTF-8"
            )
        start = len(BOM) if begin.startswith(BOM) else 0
        rest = begin[start:]
        while True:
            rest += b"" if b"\n" in rest else handle.readline(_STEP)
            line, newline, rest = rest.partition(b"\n")
            if comment is None or not newline or not line.startswith(comment.encode()):
                break
            start, number = start + len(line) + 1, number + 1
        following = rest + _read(handle, _LOOK)
    if comment is not None and not newline and (not line or line.startswith(comment.encode())):
        raise UserError(f"{path}: no line of data, only comments; name a file with data")
    if not newline and len(line) >= _STEP and b"\r" not in line:
        raise UserError(f"{path}: no line end in the first {_STEP >> 20} MiB; name a file of text lines")
    inside = line.rstrip(b"\r").find(b"\r") >= 0
    if inside or _returns_alone(following):
        advice = "tr -d '\\r'" if b"\r\r\n" in following else "tr '\\r' '\\n'"
        raise UserError(
            f"{path}: line {number + (not inside)}: its lines end in a carriage return (CR) alone, allowed: a newline "
            f"(LF), or CR and LF; convert them, as by: {advice}"
        )
    return First(start, line + newline, number)


def _returns_alone(data: bytes) -> bool:
    """True if lines end in a carriage return alone, or have one more before their end, about as often as not."""
    if b"\r" not in data.replace(b"\r\n", b""):
        return False
    bare = re.sub(rb'"[^"\n]*"', b"", data).removesuffix(b"\r").replace(b"\r\n", b"\n")
    return 4 * bare.count(b"\r") >= max(3 * bare.count(b"\n"), 1)


def first_of(path: str, start: int, count: int) -> bytes:
    """The first lines, at most `count`, from byte `start` of the text on, and at most a MiB; the last line is ended."""
    if packing(path) is None:
        data = ended(read_lines(path, start, start, start + (1 << 20)))
    else:
        data = ended(next(blocks(path, start, 1 << 20), b""))
    lines = min(count, line_count(data))
    return first_lines(data, lines) if lines else b""


def beginning(path: str) -> bytes:
    """The first bytes of a file's text, without a BOM and blanks; a packed file is unpacked."""
    with _opened(path) as handle:
        return _read(handle, 4096).removeprefix(BOM).lstrip()


def splits(start: int, end: int, step: int) -> list[tuple[int, int]]:
    """Cuts [start, end) into ranges [low, high) of `step` bytes; the last may be shorter."""
    return [(at, min(at + step, end)) for at in range(start, end, step)]


def read_lines(path: str, start: int, low: int, high: int) -> bytes:
    """The lines whose first byte lies in [low, high); the file's first line begins at `start`.

    A line longer than LONGEST_LINE is cut, so memory is bounded by high - low + LONGEST_LINE.
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
    """Yields lines of a packed file from its unpacked byte `start` on, about `size` bytes at a time.

    Lines longer than LONGEST_LINE are cut.
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


def ended(data: bytes) -> bytes:
    """The lines as they are; a last line without a newline gets one."""
    return data + b"\n" if data and data[-1:] != b"\n" else data


#: its stub wrongly says that it is no exception type
_INVALID = cast(type[Exception], isal_zlib.error)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading bytes, unpacked if it is packed. Raises UserError if a packed file is broken."""
    packed = packing(path)
    try:
        with reading(path) as handle, _unpacked(handle, packed) as opened:
            yield opened
    except (EOFError, zlib.error, _INVALID, OSError) as problem:
        if isinstance(problem, OSError) and (packed is None or problem.errno is not None):
            raise  # the disk's or the store's, not the file's
        raise UserError(f"{path}: broken {packed} file: {problem}; fetch it again") from None


def _unpacked(handle: BinaryIO, packed: Packing | None) -> AbstractContextManager[BinaryIO]:
    if packed == "gzip":
        return cast(BinaryIO, igzip_threaded.open(handle, "rb"))
    if packed is not None:  # Python's own reader of bzip2 takes a damaged later stream for the file's end
        stream = pa.CompressedInputStream(pa.PythonFile(handle, mode="r"), "bz2" if packed == "bzip2" else packed)
        return cast(BinaryIO, io.BufferedReader(stream, _STEP))
    return nullcontext(handle)


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
        newline = data.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(data)
    return at
