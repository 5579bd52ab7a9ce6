"""A small git repository whose system is the known one, and whose head may be slower."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

COMMIT = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "--allow-empty", "-m")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True).stdout


def commit(folder: Path, message: str, files: dict[str, str]) -> str:
    """Commits these files; returns the commit."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, *COMMIT, message)
    return git(folder, "rev-parse", "HEAD").strip()


def benchmark(system: dict[str, Any], gate: dict[str, Any]) -> str:
    """The text of a benchmark file: 2,000 events that are replayed, and one system."""
    raw = {
        "name": "mine",
        "source": {"files": "rows.csv", "time": {"column": "t", "unit": "ms"}, "columns": {"k": "string"}},
        "experiments": [{"name": "e", "target_percent": 0}],
        "workloads": [{"name": "all", "query": "passthrough"}],
        "systems": [{"name": "job", "engine": "known", **system}],
        "replay": {"max_memory_mb": 64, "max_slip": "3s"},
        "search": {"yardstick": False, "max_age": "2s"},
        "gate": {"answers": "skip", "seconds": 0.6, "warmup_seconds": 0.1, "minutes": 0.3, **gate},
    }
    return yaml.safe_dump(raw)


ROWS = "t,k\n" + "".join(f"{number},a\n" for number in range(2000))


def repository(place: Path, base: str, head: str) -> tuple[str, str]:
    """Makes a repository whose branch main has the one file, and whose branch change has the other."""
    place.mkdir()
    git(place, "init", "--quiet", "--initial-branch", "main")
    first = commit(place, "begin", {"mine.yaml": base, "rows.csv": ROWS})
    git(place, "checkout", "--quiet", "-b", "change")
    return first, commit(place, "change", {"mine.yaml": head})
