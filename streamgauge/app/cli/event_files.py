"""The commands analyze, generate and datasets, which work on event files without a benchmark file and Airflow."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from streamgauge import config
from streamgauge.app.cli import options, source_options, usage, workplace
from streamgauge.app.cli.common import AsJson, app, tell
from streamgauge.app.cli.profile_text import as_json_object, doubtful, show
from streamgauge.app.cli.source_options import Files, Reading, spread
from streamgauge.app.cli.topic_text import fixed_json, fixed_options
from streamgauge.base.errors import UserError
from streamgauge.base.places import place
from streamgauge.base.words import counted
from streamgauge.catalog.artifacts import Artifact, ScratchStore
from streamgauge.records.manifests import EventsManifest, StreamManifest
from streamgauge.records.profile import Profile

if TYPE_CHECKING:
    from streamgauge.streams.stages.workers import Workers

Master = Annotated[
    str | None,
    typer.Option(
        help="work on Spark: local[2], spark://host:7077, yarn or k8s://…; by default processes of this command do, or "
        "local[*] for files beyond 4 GiB, or beyond 1 GiB if --order sorts them",
        show_default=False,
    ),
]


Idle = Annotated[
    str | None, typer.Option(help="time without an event after which a value of --by is idle", show_default="1m")
]


@app.command()
@spread
def analyze(
    files: Files,
    reading: Reading,
    full: Annotated[
        bool, typer.Option("--full", help="also measure inversions, distance and interleaved runs")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="also measure each value of this column alone, such as a device or a partition")
    ] = None,
    idle: Idle = None,
    save: Annotated[
        Path | None, typer.Option("--profile", help="write the whole profile here, for --delay empirical")
    ] = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Measure how disordered an event file is."""
    if save is not None:  # now, not after the measurement
        workplace.require_writable("--profile", save, files)
    source = source_options.with_parts(source_options.source(files, reading), by, idle)
    profile = measured(source, full=full, master=master)
    topic = profile.source.kafka
    if save is not None:
        try:
            profile.write(save)
        except OSError as problem:
            raise UserError(f"--profile {save}: cannot be written: {problem.strerror}") from None
    warn(profile.doubts)
    if as_json:
        typer.echo(json.dumps(as_json_object(profile) | ({} if topic is None else {"topic": fixed_json(topic)})))
    else:
        show(profile)
        if topic is not None:
            typer.echo(f"the same again      {fixed_options(topic)}")


class Measured(Profile):
    """A profile, with doubts about how its source is read, and the source with a topic's fixed range."""

    doubts: tuple[str, ...] = Field(default=(), exclude=True)
    source: config.Source = Field(exclude=True)


def measured(source: config.Source, *, full: bool = False, master: str | None = None) -> Measured:
    """The profile of a source. Raises UserError."""
    with analyzed(source, full=full, master=master) as (_, _, profile):
        return profile


@contextmanager
def analyzed(
    source: config.Source, *, full: bool = False, master: str | None = None
) -> Iterator[tuple[Workers, Artifact, Measured]]:
    """Yields the workers, the events of a source, and its profile. The events end with the block. Raises UserError."""
    # a topic has an arrival of its own, which nobody asked for
    given_arrival = source.arrival is not None and source.arrival.column != "kafka.timestamp"
    source = workplace.pinned(source)
    with (
        options.of_columns({"--by": source.places.get(source.by or "")}),
        tempfile.TemporaryDirectory(prefix="streamgauge-") as scratch,
        workplace.workers("analyze", master, ScratchStore(Path(scratch)), source) as workers,
    ):
        from streamgauge.streams.keys import Scaled
        from streamgauge.streams.stages import analyze as stage
        from streamgauge.streams.stages import ingest

        given, store = Scaled(source), ScratchStore(Path(scratch))
        with workplace.progress("reading the source"):
            events = ingest.run(workers, given, store, lines=False)
        with workplace.progress("measuring its disorder"):
            artifact = stage.run(workers, given, store, full=full)
        profile = Profile.read(artifact.file("profile.json"), "analyze again")
        of_arrival = doubtful(profile) if given_arrival else []
        doubts = (*map(options.named, events.read(EventsManifest).doubts), *of_arrival)
        yield workers, events, Measured.model_construct(**dict(profile), doubts=doubts, source=source)


@dataclass(frozen=True)
class Generated:
    """Figures of a stream that was generated, its files, and doubts and hints about the source."""

    events: int
    source_out_of_order: int
    target_out_of_order: int
    achieved_out_of_order: int
    feasible_max: int
    duplicates: int
    sha256: str
    quarantined: int
    quarantine_reasons: dict[str, int]
    files: list[str]
    doubts: list[str]


@app.command()
@spread
def generate(
    files: Files,
    target: Annotated[
        Any,
        typer.Option(
            parser=usage.percent_or_source,
            metavar="<str>",
            help="percent of events that are to be out of order, or source: as many as there are",
        ),
    ],
    seed: Annotated[int, typer.Option(help="seed of the stream; the same seed gives the same stream, bit by bit")],
    out: Annotated[
        Path, typer.Option(help="directory to create, which may be s3://…; it must not exist yet, or be empty")
    ],
    reading: Reading,
    delay: Annotated[
        str | None,
        typer.Option(
            help="distribution of delays: uniform, constant, normal, exponential, lognormal, pareto, empirical, "
            "or package.module:name",
            show_default="uniform",
        ),
    ] = None,
    minimum: Annotated[str | None, typer.Option("--min", help="least delay", show_default="0s")] = None,
    maximum: Annotated[str | None, typer.Option("--max", help="largest delay", show_default="2s")] = None,
    mean: Annotated[str | None, typer.Option(help="mean (median for lognormal, pareto)")] = None,
    stddev: Annotated[str | None, typer.Option(help="normal: standard deviation")] = None,
    sigma: Annotated[float | None, typer.Option(help="lognormal: deviation of the logarithm")] = None,
    alpha: Annotated[float | None, typer.Option(help="pareto: shape")] = None,
    profile: Annotated[str | None, typer.Option(help="empirical: a profile.json to draw from")] = None,
    outages: Annotated[
        str | None,
        typer.Option(
            help="delays come in outages of the values of this column, of partition, or of all; --delay is then the "
            "distribution of their lengths"
        ),
    ] = None,
    spacing: Annotated[str | None, typer.Option(help="outages: mean time between two of a part")] = None,
    like: Annotated[
        str | None, typer.Option(help="outages: in place of --spacing, a profile.json by part to fit to, up to --max")
    ] = None,
    partitions: Annotated[int | None, typer.Option(help="outages: number of partitions, in turns or by keys")] = None,
    delivery: Annotated[
        str | None,
        typer.Option(
            help="outages: how many times as fast as they happened the events come afterwards, or at_once",
            show_default="at_once",
        ),
    ] = None,
    duplicates: Annotated[
        float | None, typer.Option(help="percent of the events that come twice, the second time right behind the first")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="also write CSV, as one ordered file")] = False,
    csv_parts: Annotated[bool, typer.Option("--csv-parts", help="also write CSV, as ordered parts")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="also write JSON lines: times, columns and the line")] = False,
    kafka: Annotated[
        bool,
        typer.Option(
            "--kafka", help="also write key, tab, line for kafka-console-producer; the first column is the key"
        ),
    ] = False,
    columns: Annotated[
        str | None,
        typer.Option(
            help="columns to keep with their types: names separated by commas, or all; name:string, name:int64 or "
            "name:float64 where the guess from the first lines is wrong, name=path where the source has another name; "
            "by default all of Parquet, none of text"
        ),
    ] = None,
    on_infeasible: Annotated[
        str, typer.Option(help="what to do if the target cannot be reached: error, or closest")
    ] = "error",
    save_bad: Annotated[
        Path | None,
        typer.Option(
            "--quarantine",
            help="write the lines that could not be read here: as they are, or with file, line number and reason if "
            "the name ends in .parquet",
        ),
    ] = None,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Generate a stream with exactly the wanted disorder from event files."""
    from streamgauge.app.cli import quarantine

    source = source_options.source(files, reading)
    source = source_options.with_columns(source, columns)
    rate = int(delivery) if delivery and delivery.isdecimal() else delivery
    parts = options.given({"by": outages, "spacing": spacing, "like": like, "partitions": partitions, "delivery": rate})
    spec = options.given({
        "distribution": delay, "min": minimum, "max": maximum, "mean": mean, "stddev": stddev, "sigma": sigma,
        "alpha": alpha, "profile": profile, "outages": parts or None,
    })  # fmt: skip
    chosen = {"csv": csv, "csv-parts": csv_parts, "jsonl": jsonl, "kafka": kafka}
    outputs = ["parquet", *(name for name, wanted in chosen.items() if wanted)]
    raw = options.given({
        "name": "stream", "seed": seed, "on_infeasible": on_infeasible, "outputs": outputs, "duplicates": duplicates,
        "target" if target == "source" else "target_percent": target, "delay": spec or None,
    })  # fmt: skip
    experiment = options.parse(config.Experiment, raw, "experiment")
    if save_bad is not None:
        workplace.require_writable("--quarantine", save_bad, files)
        quarantine.require_outside(save_bad, out)
    generated = streamed(source, experiment, out, master, save_bad)
    warn(generated.doubts)
    lines = [f"events        {generated.events:,}"]
    if generated.quarantined:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in generated.quarantine_reasons.items())
        hint = f"written to {save_bad}" if save_bad is not None else "--quarantine FILE writes them"
        lines.append(f"left out      {counted(generated.quarantined, 'line')}: {reasons}; {hint}")
    counts = (generated.source_out_of_order, generated.target_out_of_order, generated.achieved_out_of_order)
    for name, count in zip(("source", "target", "achieved"), counts, strict=True):
        lines.append(f"{name:<13} {count:,} out of order ({100 * count / max(1, generated.events):.4f} %)")
    lines.append(f"bound         {generated.feasible_max:,} under this seed")
    if generated.duplicates:
        lines.append(f"duplicates    {counted(generated.duplicates, 'more row')}")
    lines += [f"sha256        {generated.sha256}", *(f"written       {file}" for file in generated.files)]
    tell("\n".join(lines), vars(generated), as_json)


def streamed(
    source: config.Source,
    experiment: config.Experiment,
    out: Path,
    master: str | None = None,
    save_bad: Path | None = None,
) -> Generated:
    """Generates a stream in a new folder; returns its figures. Raises UserError.

    save_bad: where the lines go that cannot be read.
    """
    from streamgauge.app.cli import quarantine
    from streamgauge.streams.disorder.outages import delays_of

    outages = experiment.delay.outages
    source = source_options.keeping(source, outages.column if outages else None)
    with options.speaking():
        delays_of(experiment.delay, source.tick)
    source = workplace.pinned(source)
    if source.kafka is not None:
        from streamgauge.streams.sources import topics

        with options.speaking():
            topics.require_order(source)
    if out.parts[:1] == ("file:",):
        out = place(out)
    with workplace.beside(out) as store, workplace.workers("generate", master, store, source) as workers:
        from streamgauge.streams.keys import Scaled
        from streamgauge.streams.stages import generate as stage
        from streamgauge.streams.stages import ingest

        given = Scaled(source)
        with workplace.progress("reading the source"):
            events = ingest.run(workers, given, store)
        with workplace.progress("generating the stream"):
            artifact = stage.run(workers, given, store, experiment)
        bad = quarantine.counted(events)
        with quarantine.writing(events, save_bad) if save_bad is not None else nullcontext():
            written = workplace.published(artifact, out)
    manifest, of_events = artifact.read(StreamManifest), events.read(EventsManifest)
    names = (*manifest.files, *manifest.csv_files, *manifest.jsonl_files, *manifest.kafka_files)
    hints = [f"hint: {hint.text}" for hint in of_events.in_file.hints]
    return Generated(
        events=manifest.events,
        source_out_of_order=manifest.source_out_of_order,
        target_out_of_order=manifest.target_out_of_order,
        achieved_out_of_order=manifest.achieved_out_of_order,
        feasible_max=manifest.feasible_max,
        duplicates=manifest.duplicates,
        sha256=manifest.sha256,
        quarantined=sum(bad.values()),
        quarantine_reasons=bad,
        files=[str(written / name) for name in names],
        doubts=[options.named(doubt) for doubt in (*of_events.doubts, *hints)],
    )


@app.command()
def datasets(
    name: Annotated[str | None, typer.Argument(help="print this one, to paste it into a benchmark file")] = None,
    as_json: AsJson = False,
) -> None:
    """List the ready-made source descriptions, for --dataset or a benchmark file."""
    from streamgauge.config import datasets as known

    if name is not None:
        text = known.pasted(name)
        tell(text.rstrip("\n"), {"name": name, "description": known.description(name), "yaml": text}, as_json)
        return
    described = {each: known.description(each) for each in known.names()}
    tell("\n".join(f"{each}: {text}" for each, text in described.items()), {"datasets": described}, as_json)


def warn(doubts: Iterable[str]) -> None:
    """Prints doubts on standard error."""
    for doubt in doubts:
        typer.echo(doubt, err=True)
