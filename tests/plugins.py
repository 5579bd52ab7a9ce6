"""Installs the package of examples/plugin as an installer would leave it: its modules, and its metadata."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[1] / "examples" / "plugin"


def installed(place: Path) -> Path:
    """Returns a folder for PYTHONPATH."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PLUGIN / "streamgauge_example", place / "streamgauge_example", ignore=ignored)
    info = place / f"streamgauge_example-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    (info / "entry_points.txt").write_text(
        "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups)
    )
    return place
