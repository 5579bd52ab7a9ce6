"""A sound benchmark file, and ways to change and to load it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from streamgauge import config

SOUND: dict[str, Any] = {
    "name": "b",
    "source": {"files": "f.csv", "time": {"column": "t", "unit": "ms"}},
    "experiments": [{"name": "e", "target_percent": 20}],
}


def changed(*place: str | int, value: Any) -> dict[str, Any]:
    """The sound file with one value set, or taken out when it is None."""
    raw: dict[str, Any] = json.loads(json.dumps(SOUND))
    node: Any = raw
    for part in place[:-1]:
        node = node[part] if isinstance(part, int) else node.setdefault(part, {})
    if value is None:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    return raw


def loaded(path: Path, raw: Any) -> config.Benchmark:
    path.write_text(raw if isinstance(raw, str) else yaml.safe_dump(raw))
    return config.load(path)
