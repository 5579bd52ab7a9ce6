"""Records that are appended whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import append_json, read_jsonl, write_json


def test_a_record_of_which_the_disk_takes_a_part_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.jsonl"
    append_json(file, {"a": 1})
    with monkeypatch.context() as patch:
        write = os.write
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
        with pytest.raises(OSError, match="No space left"):
            append_json(file, {"a": 2})
    assert file.read_text().startswith('{"a": 1, ')
    assert file.read_text().count("\n") == 1
    append_json(file, {"a": 3})
    assert read_jsonl(file) == [{"a": 1}, {"a": 3}]


@pytest.mark.parametrize(("bytes_lost", "read"), [(1, [1, 2, 3]), (2, [1, 3])])
def test_a_last_record_without_its_newline_is_kept_and_a_torn_one_is_not(
    tmp_path: Path, bytes_lost: int, read: list[int]
) -> None:
    file = tmp_path / "a.jsonl"
    for number in (1, 2):
        append_json(file, {"a": number})
    os.truncate(file, file.stat().st_size - bytes_lost)
    assert [one["a"] for one in read_jsonl(file)] == read[:-1]
    append_json(file, {"a": 3})
    assert [one["a"] for one in read_jsonl(file)] == read


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: is not a regular file; name a file in a folder of yours"):
        write_json(pipe, {})
    assert pipe.is_fifo()
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]
