"""The parts of a text stream become one file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

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
