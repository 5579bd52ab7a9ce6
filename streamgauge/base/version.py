"""Tells the version: by the tag of this commit, such as v0.2.0, where it has one; else as pyproject.toml states it.

Hatchling runs this file by itself when it builds a wheel, so it imports nothing of ours.
"""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

CLONE = Path(__file__).resolve().parents[2]


def version(clone: Path = CLONE) -> str:
    """Returns the version of a clone, or of its sources alone."""
    command = ["git", f"--git-dir={clone / '.git'}", "describe", "--tags", "--exact-match", "--match=v[0-9]*"]
    try:
        tag = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:  # no git
        tag = ""
    stated: str = tomllib.loads((clone / "pyproject.toml").read_text())["tool"]["streamgauge"]["version"]
    return tag.removeprefix("v") or stated
