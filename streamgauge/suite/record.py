"""What suites leave in a run's directory: rows, appended as they come, and the capability matrix that follows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamgauge.artifacts import append_json, read_jsonl, write_json
from streamgauge.suite.capabilities import capabilities

ROWS, CAPABILITIES = "nexmark.jsonl", "capabilities.json"


def keep(directory: Path, row: Mapping[str, Any]) -> None:
    append_json(directory / ROWS, dict(row))
    write_json(directory / CAPABILITIES, capabilities(read_jsonl(directory / ROWS)))
