"""Folders for files in the making, and what stays of them."""

from __future__ import annotations

from pathlib import Path

from streamgauge.base.folders import temporary_folder


def test_folders_made_for_nothing_go_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with temporary_folder(tmp_path / "a/b/c/.out.tmp"):
        (tmp_path / "a/b/c/.out.tmp/half").touch()
    assert [*tmp_path.rglob("*")] == [tmp_path / "a"]
    with temporary_folder(tmp_path / "a/b/c/.out.tmp"):
        (tmp_path / "a/b/c/.out.tmp").rename(tmp_path / "a/b/c/out")
    assert (tmp_path / "a/b/c/out").is_dir()
