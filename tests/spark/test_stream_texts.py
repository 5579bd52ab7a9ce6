"""The text formats of a stream, and how their parts become one file."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.streams.stages import stream_texts


@pytest.mark.parametrize("kernel", [True, False])
def test_files_are_appended_within_the_kernel_or_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: bool
) -> None:
    files = [tmp_path / f"part-{number}" for number in range(3)]
    for file, text in zip(files, (b"head\nfirst\n", b"", b"third\n" * 100_000), strict=True):
        file.write_bytes(text)
    if not kernel:

        def refused(*_: object) -> int:
            raise OSError(errno.EXDEV, "another file system")

        monkeypatch.setattr(os, "copy_file_range", refused)
    stream_texts.append(files, tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == b"head\nfirst\n" + b"third\n" * 100_000
    assert [file.name for file in tmp_path.iterdir()] == ["whole"]


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
ROWS = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.none() | WORDS,
    st.none() | st.floats(),
    WORDS,
    st.sampled_from(["\n", "\r\n", ""]),
)


@given(st.lists(ROWS, max_size=6), st.booleans())
def test_json_lines_are_those_of_json_dumps(
    rows: list[tuple[int, str | None, float | None, str, str]], jsons: bool
) -> None:
    lines = [json.dumps({"a": word}) if jsons else word for _, _, _, word, _ in rows]
    columns: dict[str, Any] = {
        "ingestion_time": pa.array([one[0] for one in rows], pa.int64()),
        'a "name"': pa.array([one[1] for one in rows], pa.string()),
        "x": pa.array([one[2] for one in rows], pa.float64()),
        "line": pa.array([(line + one[4]).encode() for line, one in zip(lines, rows, strict=True)], pa.binary()),
    }
    made = b"".join(
        bytes(part) for part in stream_texts.of_rows("jsonl", pa.table(columns), separator=",", json_source=jsons)
    )
    wanted = ""
    for (at, word, x, _, _), line in zip(rows, lines, strict=True):
        kept = line.rstrip("\r\n")
        row = {"ingestion_time": at, 'a "name"': word, "x": x if x is None or math.isfinite(x) else None}
        text = kept if jsons else json.dumps(kept, ensure_ascii=False)
        wanted += json.dumps(row, ensure_ascii=False)[:-1] + f', "line": {text}}}\n'
    assert made == wanted.encode()
