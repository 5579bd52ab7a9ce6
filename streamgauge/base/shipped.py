"""Finds what the project ships beside its library: DAGs, jobs, suites and benchmark files."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import streamgauge
from streamgauge.base.errors import UserError

#: the folder of the library
PACKAGE = Path(streamgauge.__file__).resolve().parent
_IN_WHEEL = PACKAGE / "shipped"  # as pyproject.toml maps it
#: the repository that holds the library; None for an installed wheel
CLONE = None if _IN_WHEEL.is_dir() else PACKAGE.parent
#: holds dags/, jobs/, expectations/ and configs/
SHIPPED = CLONE or _IN_WHEEL
#: where `make` makes tools, for messages of an installed wheel
ASIDE = "" if CLONE else " in a clone, whose folder .venvs STREAMGAUGE_TOOLS then names"
INSTALL = "install the wheel with its extra `all`, or run `make setup` in a clone"


def missing_extra(problem: ModuleNotFoundError) -> str | None:
    """Says which extra of the wheel holds the package that could not be imported; None if none does."""
    from importlib import metadata  # it takes a tenth of a second

    package = (problem.name or "").partition(".")[0]
    with suppress(metadata.PackageNotFoundError):
        for line in metadata.requires("streamgauge") or ():
            name, extra = re.match(r"[\w.-]+", line), re.search(r"extra == ['\"]([\w-]+)", line)
            # `all` has the packages of other extras
            if name and extra and extra[1] != "all" and name[0].lower().replace("-", "_") == package.lower():
                return f"{package} is not installed; install the wheel with its extra `{extra[1]}`"
    return None


def shipped(name: str) -> Path:
    """The path of a shipped file or folder, such as jobs/measure.py. Raises UserError if it is missing."""
    path = SHIPPED / name
    if not path.exists():
        raise UserError(f"{path}: is missing; {INSTALL}")
    return path


def tools() -> Path:
    """The folder of what `make flink`, `make jvm-link` and `make kafka` made; STREAMGAUGE_TOOLS names another one."""
    usual = CLONE / ".venvs" if CLONE else Path(sys.prefix, "share", "streamgauge")
    return Path(os.environ.get("STREAMGAUGE_TOOLS") or usual)
