"""Headings and examples that help shows besides a command's options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

#: headings of the help; under each its commands, with the module of each
PANELS = {
    "Your own data": {
        "init": "init", "analyze": "event_files", "advise": "advise", "generate": "event_files",
        "datasets": "event_files",
    },
    "Whole benchmarks": {
        "demo": "planning", "check": "planning", "run": "planning", "ui": "planning", "runs": "runs", "open": "runs",
        "serve": "runs", "schema": "planning",
    },
    "Measurements": {
        "search": "measurements", "trial": "measurements", "workloads": "measurements", "nexmark": "nexmark",
        "hard": "nexmark", "calibrate": "measurements", "driver": "driving", "kafka": "kafka",
    },
    "Judgements": {"release-check": "releasing", "gate": "gating", "compare": "judging", "changes": "judging"},
    "Results": {"results": "results", "export": "runs", "dashboard": "results", "gc": "results"},
}  # fmt: skip
#: shown at the end of a command's help
EXAMPLES = {
    "init": ("clicks.jsonl", "access.log --out web.yaml", "rows.parquet --time created_at"),
    "analyze": (
        "flights.csv.gz --time sched --format '%Y-%m-%d %H:%M:%S'",
        "clicks.jsonl --time payload.at --unit ms --json",
        "trips.parquet --time pickup --full --profile trips.json",
    ),
    "advise": (
        "flights.csv.gz --time sched --format '%Y-%m-%d %H:%M:%S' --window 1h --lost 1%",
        "clicks.jsonl --time payload.at --unit ms --window 1m --key user --windows-wrong 1%",
        "kafka://localhost:9092/clicks --time at --unit ms --session 30m --key user --lost 0.1%",
    ),
    "generate": (
        "clicks.csv --time ts --unit ms --target 20 --max 30s --seed 1 --out late20",
        "clicks.csv --time ts --unit ms --target 5 --delay pareto --mean 2s --alpha 1.5 --max 10m --seed 1 --out s",
        "s3://raw/clicks.csv.gz --time ts --unit ms --target 1 --seed 7 --out s3://streams/late1",
    ),
    "check": ("mine.yaml", "mine.yaml --json"),
    "run": (
        "mine.yaml",
        "mine.yaml --experiment late20 --scale 0.1",
        "mine.yaml --only generate",
        "mine.yaml --resume mine-20260301T020000Z-1a2b",
        "mine.yaml --master spark://host:7077",
    ),
    "ui": ("", "benchmarks/ --port 0"),
    "open": ("", "nightly-2026-03-01"),
    "serve": ("", "--artifacts s3://results/streamgauge --port 0"),
    "search": (
        "mine.yaml --experiment late20 --workload all --system spark",
        "mine.yaml --experiment late20 --workload all --system spark --processes 3 --long-runs 120",
        "mine.yaml --experiment late20 --workload all --system spark --run search-1a2b3c4d",
    ),
    "trial": (
        "mine.yaml --experiment late20 --workload all --system spark --rate 50000 --seconds 30",
        "mine.yaml --experiment late20 --workload all --system spark --rate 50000 --seconds 30 --behind 2",
    ),
    "calibrate": ("--capacity 500000 --batch-cost 0.3 --noise 0.05 --seeds 20", "--capacity 5000 --continuous --real"),
    "driver": (
        "artifacts/data/stream/1a2b3c4d --rate 1000 --seconds 60",
        "--store artifacts --host 0.0.0.0 --port 7000 --certificate host.pem",
    ),
    "kafka": ("", "--port 0 --directory /tmp/kafka"),
    "nexmark": ("--queries q5,q7", "--disorder 20 --system spark", "--events 1000000 --mode streaming --json"),
    "release-check": ("release.yaml --baseline spark-4.2 --candidate spark-4.3",),
    "gate": (
        "mine.yaml --base origin/main --head HEAD",
        "mine.yaml --base origin/main --head HEAD --minutes 5 --output gate --json",
    ),
    "export": ("flights-20260301T020000Z-1a2b", "flights-20260301T020000Z-1a2b --out paper/figures --no-svg"),
    "gc": ("--budget 50GiB --dry-run", "--budget 20GiB --keep-runs 1"),
}


def modules(arguments: Sequence[str]) -> list[str]:
    """Returns the module of the command that these arguments name; all modules if they name none."""
    module_of = {name: module for commands in PANELS.values() for name, module in commands.items()}
    named = next((one for one in arguments if not one.startswith("-")), None)
    return [module_of[named]] if named in module_of else list(dict.fromkeys(module_of.values()))


def arrange(app: typer.Typer) -> None:
    """Puts the commands under their headings, in their order, and examples at the end of each command's help."""
    order = [name for names in PANELS.values() for name in names]
    app.registered_commands.sort(key=lambda info: order.index(_name(info)) if _name(info) in order else len(order))
    registered: list[Any] = [*app.registered_commands, *app.registered_groups]
    for info in registered:
        called = _name(info)
        if called in EXAMPLES:
            lines = (f"streamgauge {called} {arguments}".strip() for arguments in EXAMPLES[called])
            info.epilog = "\n\n".join(["Examples:", *lines])
        info.rich_help_panel = next((panel for panel, names in PANELS.items() if called in names), None)


def _name(info: Any) -> str:
    return info.name or (info.callback.__name__ if info.callback else "")
