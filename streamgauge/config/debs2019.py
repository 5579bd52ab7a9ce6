"""Reads the JSON format of the DEBS 2019 poster as a benchmark."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration


def from_debs2019(raw: dict[str, Any], path: Path) -> dict[str, Any]:
    """Converts the JSON of Grulich et al., "Generating Reproducible Out-of-Order Data Streams", DEBS 2019.

    There delays are in milliseconds, files have no header, distributions are uniform. Returns what the same
    benchmark would be in YAML. Raises UserError.
    """
    source = raw.get("dataSource")
    if not isinstance(source, dict):
        raise UserError(f"{path}: dataSource: found {source!r}, allowed: a mapping with file, seperator")
    time = raw.get("time", source.get("time"))
    wanted = raw.get("experimentDataConfigurations")
    if not isinstance(time, dict):
        raise UserError(f"{path}: time: found {time!r}, allowed: a mapping with timeIndex, sourceTimeUnit")
    if not isinstance(wanted, list) or not wanted:
        raise UserError(f"{path}: experimentDataConfigurations: found {wanted!r}, allowed: a list of experiments")
    _known(source, {"file", "seperator", "separator", "time"}, f"{path}: dataSource")
    _known(time, {"timeIndex", "sourceTimeUnit"}, f"{path}: time")
    for key in ("timeIndex", "sourceTimeUnit"):
        if key not in time:
            raise UserError(f"{path}: time.{key}: this key is missing")
    index = time["timeIndex"]
    _known(raw, {"dataSource", "time", "experimentDataConfigurations", "name"}, str(path))
    experiments = []
    for number, item in enumerate(wanted):
        where = f"{path}: experimentDataConfigurations.{number}"
        if not isinstance(item, dict):
            raise UserError(f"{where}: found {item!r}, allowed: a mapping")
        _known(item, {"name", "targetOutOfOrderFactor", "minDelay", "maxDelay", "delaySeed"}, where)
        if "targetOutOfOrderFactor" not in item:
            raise UserError(f"{where}.targetOutOfOrderFactor: this key is missing")
        experiments.append(
            {
                "name": item.get("name", f"experiment{number}"),
                "target_percent": item["targetOutOfOrderFactor"],
                "seed": item.get("delaySeed", 42),
                "delay": {
                    "min": _milliseconds(item.get("minDelay", 0), f"{where}.minDelay"),
                    "max": _milliseconds(item.get("maxDelay", 2000), f"{where}.maxDelay"),
                },
            }
        )
    return {
        "name": raw.get("name", re.sub(r"[^A-Za-z0-9_.-]", "-", path.stem)),
        "source": {
            "files": source.get("file", ()),
            "separator": source.get("seperator", source.get("separator", ",")),
            "header": False,
            "time": {
                "column": int(index) if isinstance(index, str) and re.fullmatch("[0-9]+", index) else index,
                "unit": time["sourceTimeUnit"],
            },
        },
        "experiments": experiments,
    }


def _milliseconds(value: Any, where: str) -> Duration:
    """Duration of so many milliseconds, given as a JSON number or as one in quotes."""
    try:
        number = Decimal("" if isinstance(value, bool) else str(value))
        return Duration.parse(f"{number:f}ms" if number >= 0 else None)
    except (ArithmeticError, ValueError):
        raise UserError(f"{where}: found {value!r}, allowed: milliseconds, 0 or more") from None


def _known(mapping: dict[str, Any], keys: set[str], where: str) -> None:
    for key in mapping:
        if key not in keys:
            raise UserError(f"{where}: found the key {key!r}, allowed: {', '.join(sorted(keys))}")
