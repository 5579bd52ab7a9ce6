"""Tags a commit: its version is the tag's; that of any other, and of sources without git, is pyproject.toml's."""

from __future__ import annotations

import subprocess
from importlib.metadata import version as installed
from pathlib import Path

import streamgauge
from streamgauge.base.version import version


def git(clone: Path, *command: str) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=n@n", "-c", "tag.gpgsign=false", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(clone), *who, *command], check=True, capture_output=True)


def test_the_version_is_the_commit_s_tag_or_the_stated_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.streamgauge]\nversion = "0.1.0"\n')
    assert version(tmp_path) == "0.1.0"
    git(tmp_path, "init")
    git(tmp_path, "commit", "--allow-empty", "-m", "one")
    assert version(tmp_path) == "0.1.0"
    git(tmp_path, "tag", "nightly")
    assert version(tmp_path) == "0.1.0", "a tag of another kind"
    git(tmp_path, "tag", "v0.2.0")
    assert version(tmp_path) == "0.2.0"
    git(tmp_path, "commit", "--allow-empty", "-m", "two")
    assert version(tmp_path) == "0.1.0"
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "pyproject.toml").write_text('[tool.streamgauge]\nversion = "3"\n')
    assert version(tmp_path / "within") == "3", "sources within somebody else's repository"


def test_the_library_tells_the_version_that_is_installed() -> None:
    assert streamgauge.__version__ == installed("streamgauge")
