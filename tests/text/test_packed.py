"""Packed files give the lines of plain ones, and broken ones are told."""

from __future__ import annotations

import bz2
import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from streamgauge.base.errors import UserError
from streamgauge.streams.text import ranges
from tests.flips import flipped

TEXT = b"t,v\n" + b"".join(b"%d,%d\n" % (i, random.Random(i).randrange(10**9)) for i in range(30_000))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packed:
        packed.write(data)
    return bytes(sink.getvalue())


PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bzip2": bz2.compress, "zstd": zstd}


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("members", [1, 3])
def test_packed_files_give_the_same_lines(tmp_path: Path, kind: str, members: int) -> None:
    """Files of several members are read too, as tools that pack in parallel write them."""
    cut = len(TEXT) // members
    parts = [TEXT[i * cut : (i + 1) * cut if i + 1 < members else None] for i in range(members)]
    file = tmp_path / "f"
    file.write_bytes(b"".join(map(PACK[kind], parts)))
    assert ranges.packing(str(file)) == kind
    start, header, _ = ranges.first_line(str(file))
    assert (start, header) == (0, b"t,v\n")
    assert b"".join(ranges.blocks(str(file), 4, 50_000)) == TEXT[4:]


#: zstd writes no checksum unless it is told to
@pytest.mark.parametrize(
    ("kind", "how"), [("gzip", "cut"), ("bzip2", "cut"), ("zstd", "cut"), ("gzip", "garbled"), ("bzip2", "garbled")]
)
def test_a_broken_file_is_told(tmp_path: Path, kind: str, how: str) -> None:
    packed = bytearray(PACK[kind](TEXT))
    if how == "cut":
        del packed[len(packed) // 2 :]
    else:
        packed[len(packed) // 2 : len(packed) // 2 + 40] = bytes(40)
    file = tmp_path / "f"
    file.write_bytes(packed)
    with pytest.raises(UserError, match=f"{file}: broken {kind} file: .*; fetch it again"):
        list(ranges.blocks(str(file), 0, 1 << 20))


def test_a_small_file_with_a_flipped_bit_gives_its_lines_or_is_told(tmp_path: Path) -> None:
    text, file, refused = b"t,v\n1,2\n3,4\n", tmp_path / "f.gz", 0
    for copy in flipped(gzip.compress(text, mtime=0), 3):
        file.write_bytes(copy)
        try:
            read = ranges.first_line(str(file))[1] + b"".join(ranges.blocks(str(file), 4, 1 << 20))
        except UserError:
            refused += 1
        else:
            assert read == text or not copy.startswith(b"\x1f\x8b")
    assert refused > 50


@pytest.mark.parametrize("second", [b"\0" * 500, b"plain,text\n", bz2.compress(TEXT)[:-20], b"BZh9" + b"x" * 300])
def test_a_bzip2_file_whose_later_stream_is_broken_is_told(tmp_path: Path, second: bytes) -> None:
    """Python's reader takes it for the end of the file."""
    file = tmp_path / "f"
    file.write_bytes(bz2.compress(TEXT) + second)
    with pytest.raises(UserError, match=f"{file}: broken bzip2 file: .*; fetch it again"):
        list(ranges.blocks(str(file), 0, 1 << 20))
