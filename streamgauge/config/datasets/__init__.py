"""Ready-made source descriptions of public data sets; users fetch the data sets themselves."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from streamgauge.base.errors import UserError
from streamgauge.base.plugins import Parts
from streamgauge.config import Source, parse

_FILE = Path(__file__).with_name("sources.yaml")
UCI_HAR_PERIOD_MS = 20


def names() -> tuple[str, ...]:
    return _all().names()


def description(name: str) -> str:
    return str(_entry(name)["description"])


def source(name: str, files: tuple[str, ...] | str, **more: Any) -> Source:
    """Source for those files of a data set; more: further keys of the source.

    Raises UserError, which lists the data sets, for an unknown name.
    """
    return parse(Source, {"files": files, **_entry(name)["source"], **more}, f"data set {name}")


def pasted(name: str) -> str:
    """A data set's source as YAML, to paste into a benchmark file. Raises UserError as source() does."""
    return yaml.safe_dump({"source": {"files": ["FILE"], **_entry(name)["source"]}}, sort_keys=False)


def add_clock(samples: Path, target: Path, period_ms: int = UCI_HAR_PERIOD_MS) -> None:
    """Copies a file sampled at a constant rate: each line's implied time (ms from 0), then its fields, by one blank."""
    with open(samples, "rb") as lines, open(target, "wb") as out:
        out.writelines(b"%d %s\n" % (number * period_ms, b" ".join(line.split())) for number, line in enumerate(lines))


def _entry(name: str) -> dict[str, Any]:
    entry = _all().load(name, "data set")
    if not isinstance(entry, dict) or not {"description", "source"} <= set(entry):
        raise UserError(f"data set: {_all().outside(name)} is no dict of description and source")
    return entry


@cache
def _all() -> Parts:
    return Parts("datasets", yaml.safe_load(_FILE.read_text(encoding="utf-8")))
