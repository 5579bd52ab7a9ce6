"""The page's section on the run itself: how to run it again, its records, its configuration, and the run before it."""

from __future__ import annotations

import json
import shlex
from pathlib import PurePath
from typing import Any

import yaml

from streamgauge.base import secrets
from streamgauge.base.places import Remote
from streamgauge.catalog import run_summary
from streamgauge.config import BENCHMARK, Benchmark
from streamgauge.records.result import Result
from streamgauge.results.report.blocks import Block, Cell, Code, Hole, Note, Section, Table, Text, attempt
from streamgauge.results.report.formatting import between, marked
from streamgauge.results.report.metric_names import for_people
from streamgauge.results.report.run_records import Records

#: files that the page's figures come from, and what they are
_FILES = {
    BENCHMARK: "the benchmark as this run had it",
    "stages.jsonl": "each attempt at a stage: when, how long, how it ended, on which machine",
    "results.jsonl": "each measured figure, with its interval",
}


def section(records: Records) -> Section:
    files = [Note(f"{name}: {what}", href=name) for name, what in _FILES.items() if _is_there(records, name)]
    blocks: list[Block] = [Code(f"streamgauge run runs/{shlex.quote(records.run_id)}/{BENCHMARK}"), *files]
    yaml_text = settings(records.benchmark)
    if secrets.MASK in yaml_text:
        blocks.append(Note(f"{secrets.MASK} stands for a secret: put it, or ${{VARIABLE}}, in its place first."))
    blocks.append(Code(yaml_text, folded="Configuration"))
    parts = [Section("before", "Beside the run before", blocks=[attempt("The run before", _before, records)])]
    lead = (
        "The same streams come out on every machine. In the artifacts' folder, this command makes them "
        "again, and measures again."
    )
    return Section("again", "This run again", lead, blocks, parts)


def _is_there(records: Records, name: str) -> bool:
    return name == BENCHMARK or (records.directory / name).exists() or isinstance(records.directory, Remote)


def settings(benchmark: Benchmark) -> str:
    """The benchmark as YAML, without defaults; files of the source by their names, as folders are nobody's business."""
    raw: dict[str, Any] = secrets.masked(json.loads(benchmark.model_dump_json(exclude_defaults=True)))
    for key in raw["source"].keys() & {"files", "expectations"}:
        raw["source"][key] = [PurePath(file).name for file in raw["source"][key]]
    return yaml.safe_dump(raw, sort_keys=False, allow_unicode=True).rstrip()


def _before(records: Records) -> Block:
    """Table of the figures that this run shares with the newest earlier run of the benchmark that can be read."""
    mine = run_summary.figures(records.directory)
    began = run_summary.began(records.directory)
    begins, problems = run_summary.of_each(records.store.runs(), run_summary.began)
    earlier = [(at, path) for path, at in begins.items() if at and at < (began or "~")]
    for _, path in sorted(earlier, reverse=True):
        figures, more = run_summary.of_each([path], run_summary.figures)
        problems |= more
        theirs = figures.get(path, {})
        if shared := run_summary.shared(theirs, mine):
            rows: list[list[Cell]] = [_row(key, theirs[key], mine[key]) for key in shared]
            columns = ["cell", "figure", "before", "its interval", "now", "its interval"]
            changed = sum(theirs[key].config_hash != mine[key].config_hash for key in shared)
            settings = [f"Of its figures here, {changed} had other settings"] if changed else []
            noise = "With one run on each side, a difference cannot be told from the noise between runs"
            caption = _sentences(records, f"{path.name} was the run before", *settings, noise, *problems.values())
            return Table(columns, rows, caption, cards=True)
    none = "these artifacts hold no earlier run with a figure of the same cells"
    return Hole("No run before", _sentences(records, none, *problems.values()))


def _sentences(records: Records, *texts: str) -> str:
    return " ".join(f"{records.relative(text)}." for text in texts)


def _row(key: tuple[str, ...], before: Result, now: Result) -> list[Cell]:
    experiment, workload, system, _, metric = key
    name, values = f"{experiment}, {workload}, {system}", (before, now)
    shown = [part for one in values for part in (marked(one.value, one.claim, one.unit), between((one.low, one.high)))]
    return [Text(name), for_people(metric), *shown]
