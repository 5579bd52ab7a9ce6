"""The command init: writes a benchmark file for a person's own data from a look at its first lines."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from streamgauge import config
from streamgauge.app.cli import options, workplace
from streamgauge.app.cli.common import AsJson, app, tell
from streamgauge.app.cli.job_file import Job, systems
from streamgauge.app.cli.profile_text import hints_json, span_json
from streamgauge.app.cli.source_options import Reading, spread, topic_of
from streamgauge.base.errors import UserError
from streamgauge.base.places import as_user_error, write_whole
from streamgauge.base.units import PS, Duration, moment, show_ticks
from streamgauge.base.words import counted
from streamgauge.records.profile import Span

_FILE = """\
# Written by `streamgauge init` from the first {lines:,} lines of {file}. Check it, then run it:
#   streamgauge check {out}    reads the first lines, prints the plan
#   streamgauge run {out}      proves the streams, finds the rate, writes a page
name: {name}
source:
{source}
experiments: # a stream each; in the file, {disorder} are out of order
{experiments}
workloads: # `streamgauge workloads` lists the queries
  - {{name: all, query: passthrough}}
systems:
{systems}
"""
_SPARK = """\
  - {name: spark, engine: spark, master: "local[1]"}
search: {max_age: 3s} # how far the system may be behind"""

#: characters of a key in YAML's short form
_LONGEST_KEY = 1000
_SORTED = ", of the events sorted by time, as too many are out of order already to delay more"
#: what `init` finds out by itself, or takes as it is
_UNASKED = ("separator", "decimal", "comment", "no_header", "order", "max_bad_fraction", "dataset")


@app.command()
@partial(spread, without=_UNASKED)
def init(
    file: Annotated[
        str, typer.Argument(help="an event file: CSV and the like, JSON lines or Parquet, packed or not; or kafka://…")
    ],
    reading: Reading,
    out: Annotated[Path | None, typer.Option(help="the benchmark file to write; by default NAME.yaml here")] = None,
    job: Annotated[Job | None, typer.Option(help="for a job of your own on Kafka, instead of a query on Spark")] = None,
    as_json: AsJson = False,
) -> None:
    """Write a benchmark file for your own event file, from its first lines."""
    from streamgauge.app.cli.first_streams import first_streams
    from streamgauge.catalog.source_files import stat_source
    from streamgauge.streams.text.guess import guess
    from streamgauge.streams.text.sample import sample

    name = re.sub(r"[^A-Za-z0-9_-]+", "_", Path(file).name.split(".")[0]).strip("_-")[:40] or "mine"
    if name.endswith(config.RESERVED):
        name += "_"
    out = out or Path(f"{name}.yaml")
    if out.exists():
        raise UserError(f"--out {out}: exists already; name another file, or remove it")
    if file == "-":
        raise UserError("-: a benchmark file names a file that can be read again; save standard input to one")
    topic = topic_of([file], reading)
    place = workplace.located(file)
    year, zone = reading.year, reading.zone
    if topic is None:
        stat_source(place, None)
    objects, form = (None, workplace.format_of(place)) if topic is None else (_records(topic), "jsonl")
    guessed = guess(place, form, reading.time, reading.event_time(), year, zone, objects)
    chosen = guessed.times[_asked([_described(one.keys()) for one in guessed.times])]
    came = reading.arrival_column()
    arrivals = {"arrival": {key: value for key, value in came.items() if value and value != "UTC"}} if came else {}

    def keys(file: str) -> dict[str, Any]:
        """Keys of `source` that differ from the default."""
        described = guessed.source(file, chosen) | arrivals
        if topic is None:
            return described
        return {
            "format": "kafka",
            "kafka": topic,
            **{k: v for k, v in described.items() if k not in ("files", "format")},
        }

    source = workplace.pinned(options.parse(config.Source, keys(place), "source"))
    ordered = {} if source.is_merged else {"order": "event_time"}
    source = source.model_copy(update=ordered)
    with options.speaking():
        looked = sample(source)
    first, last = looked.span
    doubts = [chosen.doubt] if chosen.doubt else []
    doubts += [
        f"also possible: --time {one.name}  ({_described(one.keys())})" for one in guessed.times if one != chosen
    ]
    doubts += [
        f"{option} has no effect: each time tells its own, or is a number"
        for option, key in (("--year", year and "year"), ("--zone", zone != "UTC" and "zone"))
        if key and key not in chosen.form
    ]
    notes = []
    if guessed.free_text:
        notes.append("lines go on as free text: no column is offered; write those that you need into source.columns")
    if guessed.left_out:
        notes.append(
            f"columns beyond the first {len(guessed.columns)} are left out: {', '.join(guessed.left_out[:20])}"
            f"{', …' if len(guessed.left_out) > 20 else ''}; write those that you need into source.columns"
        )
    all_doubts = doubts + notes + [options.named(doubt.removeprefix("warning: ")) for doubt in looked.doubts]
    times, read = looked.parsed.events["event_time"].to_pylist(), looked.lines - len(looked.bad)
    shown = [
        (moment(at, source.tick), line.decode().strip()[:80])
        for at, line in zip(times[:3], looked.parsed.events["line"].to_pylist(), strict=False)
    ]
    described = keys(_relative(file, out)) | ordered
    kept = len(described.get("columns", ()))
    delay = _delay(last - first, len(times), PS[source.tick])
    try:
        streams = first_streams(source, looked, delay)
    except UserError as problem:  # of a line that the sample did not reach
        all_doubts.append(str(problem))
        streams = first_streams(source, looked, delay, small=False)
    hints = looked.hints if streams.hints is None else streams.hints
    span, which = (Span(min=first, max=last), "these") if streams.span is None else (streams.span, "all")
    begin, end = (moment(at, source.tick) for at in (span.min, span.max))
    if streams.sorted:
        described["order"] = "event_time"
    text = _FILE.format(
        lines=looked.lines,
        file=_one_line(file),
        out=_one_line(str(out)),
        name=_flow(name),
        source=_yaml(described, doubts),
        disorder=streams.disorder,
        experiments="\n".join(f"  - {line}" for line in streams.experiments.values()),
        systems=_SPARK if job is None else systems(job),
    )
    try:
        write_whole(out, text.encode())
    except OSError as problem:
        raise as_user_error(problem, out) from None
    lines = [
        f"{file}: {_layout(described)}, {counted(kept, 'column')} for workloads",
        f"time      {_described(chosen.keys())}: {read:,} of {looked.lines:,} lines read",
        *(f"          {at}  {_one_line(line)}" for at, line in shown),
        f"span      {begin} to {end}, {show_ticks(span.max - span.min, source.tick)} in {which} lines",
        f"disorder  {streams.disorder} are out of order",
        *(f"doubt     {_one_line(doubt)}" for doubt in all_doubts),
        *(f"hint      {_one_line(hint.text)}" for hint in hints),
        f"streams   {' and '.join(streams.experiments)}{_SORTED if streams.sorted else ''}",
        f"written   {out}: now `streamgauge check {out}`, then `streamgauge run {out}`",
    ]
    facts = {
        "file": out, "source": described, "lines": looked.lines, "read": read, "doubts": all_doubts,
        **span_json(span, source.tick), "hints": hints_json(hints, source.tick),
        "disorder": asdict(streams.disorder), "experiments": list(streams.experiments),
    }  # fmt: skip
    tell("\n".join(lines), facts, as_json)


def _records(topic: dict[str, object]) -> bytes:
    """The first records of a topic, whose values must be objects. Raises UserError."""
    from streamgauge.streams.text.guess import LINES
    from streamgauge.streams.text.splits import first_records

    keys = {"format": "kafka", "kafka": topic, "time": {"column": "kafka.timestamp"}}
    source = options.parse(config.Source, keys, "source")
    if not source.is_json:
        raise UserError("--values: found line, allowed for init: values with names; write the file by hand for lines")
    source = workplace.pinned(source)
    with options.speaking():
        return first_records(source, LINES)


def _asked(choices: list[str]) -> int:
    """Index of the choice that the user makes; 0 if there is only one choice, or no terminal to ask on."""
    if len(choices) == 1 or not sys.stdin.isatty():
        return 0
    for number, choice in enumerate(choices, 1):
        typer.echo(f"  {number}  {choice}", err=True)
    picked: int = typer.prompt("Which one is the event time?", default=1, type=int, err=True)
    return min(max(picked, 1), len(choices)) - 1


def _described(time: dict[str, Any]) -> str:
    """Description of how a time is written, such as `column ts, unit ms`."""
    form = ", ".join(f"{key} {value}" for key, value in time.items() if key not in ("column", "columns"))
    where = f"column {time['column']}" if "column" in time else f"columns {' and '.join(map(str, time['columns']))}"
    return f"{where}, {form or 'ISO-8601'}"


def _layout(source: dict[str, Any]) -> str:
    if "format" in source:
        return {"jsonl": "JSON lines", "parquet": "Parquet", "kafka": "a Kafka topic"}[source["format"]]
    separator = {"\t": "tab", " ": "space", ",": "comma"}.get(
        source.get("separator", ","), source.get("separator", ",")
    )
    return f"text, separator {separator}, {'no header' if 'header' in source else 'a header'}"


def _relative(file: str, out: Path) -> str:
    """The name of a file as the benchmark file is to have it: relative to its folder, or absolute."""
    if "://" in file:
        return file
    place, folder = Path(file).absolute(), out.absolute().parent
    return str(place.relative_to(folder)) if place.is_relative_to(folder) else str(place)


def _yaml(source: dict[str, object], doubts: list[str]) -> str:
    lines = []
    for key, value in source.items():
        comment = f" # {_one_line(doubts[0])}" if key == "time" and doubts else ""
        lines.append(f"  {key}: {_flow(value)}{comment}")
    return "\n".join(lines)


def _flow(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {_flow(inner)}" for key, inner in value.items()) + "}"
    plain = isinstance(value, str) and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", value)
    reserved = str(value).lower() in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
    if plain and not reserved:
        return str(value)
    # YAML ends a line at more characters than JSON does
    return json.dumps(value, ensure_ascii=not (isinstance(value, str) and value.isprintable()))


def _key(name: str) -> str:
    """A key; YAML takes one of more than 1,024 characters only behind a question mark."""
    text = _flow(name)
    return text if len(text) <= _LONGEST_KEY else f"? {text} "


def _one_line(text: str) -> str:
    """The text without what ends a line, hence a comment: names come from files of others."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _delay(span: int, events: int, tick_ps: int) -> Duration:
    """A round delay that reaches over some hundred events, so that a fifth of them can be late."""
    wanted = max(300 * span * tick_ps // max(events, 1), PS["ms"])
    steps = [n * PS[unit] for unit in ("ms", "s", "m", "h", "d") for n in (1, 2, 5, 10, 20, 30, 50, 100, 200, 500)]
    return Duration(min((step for step in sorted(steps) if step >= wanted), default=max(steps)))
