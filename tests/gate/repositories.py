"""A small git repository whose system is of known speed, and whose head may be slower or wrong."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

_COMMIT = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--allow-empty", "-m")
#: events a millisecond apart; a driver ends a batch with its loop, so a short stream would cost it much
ROWS = "t,k\n" + "".join(f"{number},a\n" for number in range(20_000))


def git(folder: Path, *arguments: str) -> str:
    """Runs git; returns what it prints."""
    return subprocess.run(
        ["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, message: str, files: dict[str, str]) -> str:
    """Commits these files; returns the commit."""
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, *_COMMIT, message)
    return git(folder, "rev-parse", "HEAD")


def benchmark(gate: dict[str, Any] | None = None, **system: Any) -> str:
    """The text of a benchmark file with one system, whose pairs take two or three seconds."""
    raw = {
        "name": "mine",
        "source": {"files": "rows.csv", "time": {"column": "t", "unit": "ms"}, "columns": {"k": "string"}},
        "experiments": [{"name": "e", "target_percent": 0}],
        "workloads": [{"name": "all", "query": "passthrough"}],
        "systems": [
            {"name": "job", "engine": "tests.gate.engines:Answering", "capacity": 20_000, "batch_rows": 400, **system}
        ],
        # another process may have the CPU for a while
        "replay": {"max_memory_mb": 64, "max_slip": "3s"},
        "search": {"yardstick": False, "max_age": "1s"},
        "gate": {
            **{"rate": 2000, "compare": ["speed"], "seconds": 0.4, "warmup_seconds": 0.05, "minutes": 1},
            **(gate or {}),
        },
    }
    return yaml.safe_dump(raw)


def repository(place: Path, base: str, head: str, **files: str) -> tuple[str, str]:
    """Makes a repository: branch main has the one file, branch change, which is checked out, the other and `files`."""
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch", "main")
    begin = commit(place, "begin", {"mine.yaml": base, "rows.csv": ROWS, ".gitignore": "artifacts\ngate\n"})
    git(place, "checkout", "--quiet", "-b", "change")
    return begin, commit(place, "change", {"mine.yaml": head, **files})
