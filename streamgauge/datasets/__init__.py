"""Ready-made source descriptions; the data sets themselves are fetched by whoever uses them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, cast

import yaml

from streamgauge.config import Source, parse
from streamgauge.errors import UserError

_FILE = Path(__file__).with_name("sources.yaml")
UCI_HAR_PERIOD_MS = 20


def names() -> tuple[str, ...]:
    return tuple(_all())


def description(name: str) -> str:
    return str(_entry(name)["description"])


def source(name: str, files: tuple[str, ...] | str, **more: Any) -> Source:
    """The description of that data set for those files, with more keys. Raises UserError naming the data sets."""
    return parse(Source, {"files": files, **_entry(name)["source"], **more}, f"data set {name}")


def pasted(name: str) -> str:
    """The description as YAML, to paste into a benchmark file. Raises UserError naming the data sets."""
    return yaml.safe_dump({"source": {"files": ["FILE"], **_entry(name)["source"]}}, sort_keys=False)


def add_clock(samples: Path, target: Path, period_ms: int = UCI_HAR_PERIOD_MS) -> None:
    """Writes the lines of a file sampled at a constant rate with their implied time, in ms from 0, before them."""
    with open(samples, "rb") as lines, open(target, "wb") as out:
        out.writelines(b"%d %s\n" % (number * period_ms, b" ".join(line.split())) for number, line in enumerate(lines))


def _entry(name: str) -> dict[str, Any]:
    if name not in _all():
        raise UserError(f"data set: found {name!r}, allowed: {', '.join(_all())}")
    return _all()[name]


@cache
def _all() -> dict[str, dict[str, Any]]:
    return cast(dict[str, dict[str, Any]], yaml.safe_load(_FILE.read_text(encoding="utf-8")))
