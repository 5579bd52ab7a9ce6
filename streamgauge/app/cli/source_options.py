"""The options that describe how event files are read, and the source that they make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import update_wrapper
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from streamgauge import config
from streamgauge.app.cli import options, workplace
from streamgauge.base.errors import UserError
from streamgauge.base.schemas import RESERVED
from streamgauge.descriptions.schema_registry import schema_text
from streamgauge.descriptions.topic import OWN, of_url

if TYPE_CHECKING:
    from streamgauge.streams.text.guess_times import Time as GuessedTime

Files = Annotated[
    list[str],
    typer.Argument(
        help="event files, in order: flat text such as CSV, or JSON lines (.jsonl), plain or packed (.gz, .bz2, .zst), "
        "or .parquet; a path, s3://…, or - for standard input; or a Kafka topic, kafka://HOST:PORT/TOPIC"
    ),
]

#: options that go with a ready-made source
_BESIDE_DATASET = ("dataset", "order", "max_bad_fraction")


@dataclass(frozen=True)
class Reading:
    """Options that say how event files are read; `spread` gives them to a command."""

    time: Annotated[
        str | None,
        typer.Option("--time", help="event time: a column's name, path or 0-based index, or two such as date,time"),
    ] = None
    unit: Annotated[str | None, typer.Option(help="unit of times that are whole numbers: ps, ns, us, ms or s")] = None
    format: Annotated[
        str | None, typer.Option("--format", help="times follow this pattern: %Y-%m-%d or yyyy-MM-dd")
    ] = None
    iso: Annotated[bool, typer.Option("--iso", help="times are ISO-8601 (the default)")] = False
    year: Annotated[
        int | None, typer.Option(help="year of the first time, if times have none; it moves on at New Year")
    ] = None
    zone: Annotated[str, typer.Option(help="time zone of times without an offset")] = "UTC"
    separator: Annotated[
        str, typer.Option(help="one character, or comma, semicolon, tab, pipe, space, blanks (one or more)")
    ] = ","
    decimal: Annotated[str, typer.Option(help="mark before the fraction of a number: point or comma")] = "point"
    comment: Annotated[
        str | None, typer.Option(help="lines that begin so are no events, such as #; with --no-header")
    ] = None
    no_header: Annotated[bool, typer.Option("--no-header", help="the first line is data")] = False
    arrival: Annotated[str | None, typer.Option(help="arrival time: a column's name or index")] = None
    arrival_unit: Annotated[
        str | None, typer.Option(help="unit of arrival times, if it is not that of event times")
    ] = None
    arrival_format: Annotated[
        str | None, typer.Option("--arrival-format", help="pattern of arrival times, if it is not that of event times")
    ] = None
    arrival_iso: Annotated[bool, typer.Option("--arrival-iso", help="arrival times are ISO-8601")] = False
    order: Annotated[str, typer.Option(help="order of the events: file, arrival or event_time")] = "file"
    max_bad_fraction: Annotated[float, typer.Option(help="largest fraction of bad lines that is accepted")] = 0.01
    start: Annotated[
        str | None,
        typer.Option("--from", help="of a topic: earliest (the default), -2h, an instant, or offsets 0:100,1:250"),
    ] = None
    until: Annotated[
        str | None, typer.Option(help="of a topic: latest (the default), -2h, an instant, or offsets 0:100,1:250")
    ] = None
    most_events: Annotated[int | None, typer.Option(help="of a topic: at most so many records from the first on")] = (
        None
    )
    values: Annotated[
        str | None,
        typer.Option(help="of a topic: json (the default), line, avro, confluent-avro or confluent-json"),
    ] = None
    writer_schema: Annotated[
        str | None, typer.Option("--writer-schema", help="of a topic with --values avro: a file with Avro's schema")
    ] = None
    registry: Annotated[
        list[str] | None,
        typer.Option(
            help="of a topic: its schema registry's address; and user=me, password=${VARIABLE}, token=…, ca=…"
        ),
    ] = None
    security: Annotated[
        list[str] | None,
        typer.Option(help="of a topic: a setting of librdkafka, such as sasl.username=me; a secret as ${VARIABLE}"),
    ] = None
    dataset: Annotated[str | None, typer.Option(help="a ready-made source: see `streamgauge datasets`")] = None

    @property
    def written(self) -> dict[str, object]:
        """Keys of `source.time` that say how event times are written."""
        return {"unit": self.unit, "format": self.format, "iso": self.iso, "year": self.year, "zone": self.zone}

    def event_time(self) -> GuessedTime | None:
        """The event time, if options say how it is written. Raises UserError."""
        from streamgauge.streams.text.guess_times import Time as Known

        form = {key: value for key, value in self.written.items() if value and value != "UTC"}
        if not set(form) & {"unit", "format", "iso"}:
            return None
        if self.time is None:
            raise UserError("--time: this option is missing; name the column that --unit, --format or --iso is of")
        return Known(parts_of(self.time), form)

    def arrival_column(self) -> dict[str, object] | None:
        """`source.arrival`, which is written as event times are unless options say otherwise. Raises UserError."""
        own: dict[str, object] = {"unit": self.arrival_unit, "format": self.arrival_format, "iso": self.arrival_iso}
        if self.arrival is not None:
            other = own | {"zone": self.zone, "year": self.year if self.arrival_format else None}
            return column(self.arrival, other if any(own.values()) else self.written)
        if any(own.values()):
            raise UserError(
                "--arrival: this option is missing; name the column that --arrival-unit, --arrival-format or "
                "--arrival-iso is of"
            )
        return None


def spread(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Gives a command the options of its dataclasses, except `without`, in place of the parameters that take these."""
    plain = signature(command, eval_str=True)
    parameters: list[Parameter] = []
    groups: dict[str, tuple[Callable[..., object], list[str]]] = {}
    for one in plain.parameters.values():
        held = [one.replace(kind=Parameter.KEYWORD_ONLY)]
        if is_dataclass(group := one.annotation):
            hints = get_type_hints(group, include_extras=True)
            held = [
                Parameter(part.name, Parameter.KEYWORD_ONLY, default=part.default, annotation=hints[part.name])
                for part in fields(group)
                if part.name not in without
            ]
            groups[one.name] = one.annotation, [part.name for part in held]
        parameters += held

    def called(**given: Any) -> None:
        values = {name: group(**{part: given.pop(part) for part in parts}) for name, (group, parts) in groups.items()}
        command(**values, **given)

    # the name and the signature, from which the options are read
    described: Any = update_wrapper(called, command)
    described.__signature__ = plain.replace(parameters=parameters)
    return called


def column(name: str, written: dict[str, object]) -> dict[str, object]:
    """Keys of a time column that an option names: one column, or several with commas between them."""
    parts = parts_of(name)
    return ({"column": parts[0]} if len(parts) == 1 else {"columns": list(parts)}) | written


def parts_of(name: str) -> tuple[str | int, ...]:
    """The columns that an option names, with commas between them."""
    return tuple(int(part) if part.isascii() and part.isdigit() else part for part in name.split(","))


def source(files: list[str], given: Reading) -> config.Source:
    """The source that the options describe. Raises UserError if they are incomplete or contradict each other."""
    from streamgauge.catalog.source_files import stat_source

    located = [workplace.located(name) for name in files]
    for place in located:
        if "://" not in place:
            stat_source(place, None)
    if given.dataset is not None:
        from streamgauge.config import datasets as known

        for one in fields(Reading):
            if one.name not in _BESIDE_DATASET and vars(given)[one.name] != one.default:
                raise UserError(
                    f"--{one.name.replace('_', '-')}: found beside --dataset {given.dataset}, which already defines "
                    "it; leave one of them out"
                )
        usual = {one.name: one.default for one in fields(Reading)}  # an option that is not given leaves the data set's
        more = {"order": given.order, "max_bad_fraction": given.max_bad_fraction}
        return known.source(given.dataset, tuple(located), **{k: v for k, v in more.items() if v != usual[k]})
    if given.time is None:
        raise UserError(f"--time: this option is missing; {_likely(files[0], located[0], given)}")
    if (topic := topic_of(files, given)) is not None:
        return options.parse(
            config.Source, _read_by(given, "kafka", is_json=topic.get("values") != "line") | {"kafka": topic}, "source"
        )
    kind = workplace.format_of(located[0])
    raw = _read_by(given, kind, is_json=kind == "jsonl") | {"files": located}
    return options.parse(config.Source, raw, "source")


def _likely(file: str, place: str, given: Reading) -> str:
    """Returns what to do about a missing --time: options that read the file's first lines, the likeliest first."""
    if file.startswith("kafka://"):
        return f"name the path of the event time; `streamgauge init {shlex.quote(file)}` guesses it"
    from streamgauge.streams.text.guess import guess

    try:
        guessed = guess(place, workplace.format_of(place), year=given.year, zone=given.zone)
    except UserError:  # it has lines that no guess reads
        return "name the event time's column, or its 0-based index"
    choices = [_as_options(guessed.source(place, one)) for one in guessed.times[:3]]
    return f"{Path(file).name} can be read with {', or with '.join(choices)}"


def _as_options(source: Mapping[str, Any]) -> str:
    """The options that say the same as keys of `source`."""
    time = source["time"]
    columns = time.get("columns") or [time["column"]]
    values = {"time": ",".join(map(str, columns))} | {key: time.get(key) for key in ("unit", "format", "year", "zone")}
    values |= {key: source.get(key) for key in ("separator", "decimal", "comment")}
    values["separator"] = {"\t": "tab", " ": "space"}.get(values["separator"], values["separator"])
    flags = [] if source.get("header", True) else ["--no-header"]
    return " ".join([f"--{key} {shlex.quote(str(value))}" for key, value in values.items() if value] + flags)


def _read_by(given: Reading, kind: str, *, is_json: bool) -> dict[str, object]:
    """Keys of `source` that say how lines are read."""
    return {
        "format": kind,
        **({} if is_json and given.separator == "," else {"separator": given.separator}),
        **({} if (is_json or kind == "kafka") and not given.no_header else {"header": not given.no_header}),
        "decimal": given.decimal,
        "comment": given.comment,
        "time": column(given.time or "", given.written),
        "arrival": given.arrival_column(),
        "order": given.order,
        "max_bad_fraction": given.max_bad_fraction,
    }


def topic_of(names: list[str], given: Reading) -> dict[str, object] | None:
    """Keys of `source.kafka`, if a topic is named; else None. Raises UserError for one among files, and for options."""
    topics = [name for name in names if name.startswith("kafka://")]
    own = options.given({
        "from": given.start, "until": given.until, "most_events": given.most_events, "values": given.values,
        "security": dict(setting.partition("=")[::2] for setting in given.security or ()) or None,
        "writer_schema": given.writer_schema and schema_text(given.writer_schema, Path(), "--writer-schema"),
        "registry": dict(map(_of_registry, given.registry or ())) or None,
    })  # fmt: skip
    if not topics:
        for key in own:
            raise UserError(f"--{key.replace('_', '-')}: found without a topic, allowed: with kafka://HOST:PORT/TOPIC")
        return None
    if len(names) > 1:
        raise UserError(f"{topics[0]}: found beside {len(names) - 1} more, allowed: one topic alone")
    try:
        return {**of_url(topics[0]), **own}
    except ValueError as problem:
        raise UserError(str(problem)) from None


def _of_registry(setting: str) -> tuple[str, str]:
    """Key and value of a registry's setting, of which the address needs no key."""
    key, equals, value = setting.partition("=")
    return (key, value) if equals and key.isalpha() else ("address", setting)


def with_columns(source: config.Source, wanted: str | None) -> config.Source:
    """The source with the columns of that option. Raises UserError.

    The type of a column is that of Parquet's schema, or is guessed from the first lines of text, unless it is named.
    """
    if wanted is None and (source.columns or not source.is_typed):
        return source
    from streamgauge.streams.text import guess, splits

    source = workplace.pinned(source)
    with options.speaking():
        splits.source_splits(source, 1 << 40)  # finds a file that is not as described
    kinds = guess.columns_of(source)
    known = {**kinds, **(OWN if source.kafka is not None else {})}
    names = list(kinds) if wanted in (None, "all") else [name.strip() for name in str(wanted).split(",")]
    columns: dict[str, object] = {}
    for written, colon, kind in (name.partition(":") for name in names):
        name, equals, path = written.partition("=")
        if (path or name) not in known and not (equals and colon):
            raise UserError(f"--columns: found {path or name!r}, allowed: all, or some of {', '.join(known) or 'none'}")
        kind = kind if colon else known[path or name]
        columns[name] = {"path": path, "type": kind} if equals else kind
    return options.parse(config.Source, {**source.model_dump(), "columns": columns, "by": None}, "source")


def keeping(source: config.Source, column: str | None) -> config.Source:
    """The source that keeps that column, too. Raises UserError if it cannot have its name."""
    if column is None or column in source.columns:
        return source
    columns = {column: {"path": column, "type": "string"}, **source.columns}
    return options.parse(config.Source, source.model_dump() | {"columns": columns}, "source")


def kept(source: config.Source, given: str, kind: str = "string") -> tuple[config.Source, str]:
    """The source that keeps the column, path or 0-based index that an option names, and the column's name in it.

    Raises UserError.
    """
    if given in source.columns:
        return source, given
    (place,) = parts_of(given) if "," not in given else (given,)
    name = re.sub(r"[.`,]", "_", given) if isinstance(place, str) else f"column_{place}"
    name = f"my_{name}" if name.lower() in RESERVED else name
    columns = {name: {"path": place, "type": kind}, **source.columns}
    return options.parse(config.Source, source.model_dump() | {"columns": columns}, "source"), name


def with_parts(source: config.Source, by: str | None, idle: str | None) -> config.Source:
    """The source whose disorder is also measured for each value of a column. Raises UserError."""
    if by is None:
        if idle is not None:
            raise UserError(f"--idle: found {idle} without --by, allowed: with --by COLUMN")
        return source
    source, name = kept(source, by)
    given = {"by": name} | ({} if idle is None else {"idle": idle})
    return options.parse(config.Source, source.model_dump() | given, "source")
