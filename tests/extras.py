"""Simulates an environment with some of this project's extras, by the lock file, by blocking all other packages."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

from tests.conftest import ROOT


@cache
def distributions(*extras: str) -> frozenset[str]:
    """Normalised names of all that `pip install streamgauge[extras]` brings."""
    packages: dict[str, list[dict[str, Any]]] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        packages.setdefault(package["name"], []).append(package)
    found: set[tuple[str, str | None]] = set()
    ahead: list[tuple[str, str | None]] = [("streamgauge", extra) for extra in (None, *extras)]
    while ahead:
        if (one := ahead.pop()) in found:
            continue
        found.add(one)
        name, extra = one
        for package in packages[name]:
            optional = package.get("optional-dependencies", {})
            for needed in package.get("dependencies", []) if extra is None else optional.get(extra, []):
                if "sys_platform == 'never'" not in needed.get("marker", ""):
                    ahead += [(needed["name"], more) for more in (None, *needed.get("extra", []))]
    return frozenset(name for name, _ in found)


@cache
def modules() -> dict[str, set[str]]:
    """Top-level module -> normalised names of the installed distributions that bring it."""
    return {
        module: {re.sub(r"[-_.]+", "-", name).lower() for name in names}
        for module, names in packages_distributions().items()
    }


def blocker(*extras: str) -> str:
    """A line of Python after which only what those extras bring can be imported."""
    there = distributions(*extras)
    foreign = [module for module, names in modules().items() if not names & there]
    return f"import json, sys; sys.modules.update(dict.fromkeys(json.loads({json.dumps(foreign)!r})))\n"
