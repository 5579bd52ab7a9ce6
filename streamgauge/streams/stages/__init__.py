"""Runs the batch stages. On import, it prefers the installed PySpark to the archive that spark-submit puts first.

Python compiles the modules of that archive anew in each process, which takes half a second and more.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def _prefer_installed() -> None:
    """Takes the archives off Python's path if the installed PySpark is the one that they belong to."""
    before = list(sys.path)
    archives = [Path(one) for one in before if Path(one).name == "pyspark.zip" or Path(one).match("py4j-*-src.zip")]
    sys.path[:] = [one for one in before if Path(one) not in archives]
    spec = importlib.util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec and spec.origin else None
    if home is None or not all(one.is_relative_to(home) for one in archives):
        sys.path[:] = before


_prefer_installed()
