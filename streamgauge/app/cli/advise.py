"""The command advise: how long a job shall wait for late events."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from streamgauge import config
from streamgauge.app.cli import advise_measuring, event_files, options, source_options, workplace
from streamgauge.app.cli.advice_text import as_json_object, measured_json, show, show_measured
from streamgauge.app.cli.common import AsJson, app, finite
from streamgauge.app.cli.event_files import Idle, Master
from streamgauge.app.cli.source_options import Files, Reading, spread
from streamgauge.base.errors import UserError
from streamgauge.base.units import PS, Tick
from streamgauge.base.words import counted
from streamgauge.catalog.artifacts import Artifact
from streamgauge.records.advice import Advice, Answers, PartAdvice, Question, Target
from streamgauge.records.profile import UNMERGED, Profile

#: a number that is a type of column
_NUMBERS = ("int64", "float64")
#: longest delay, in ticks: an event time plus so much fits into 64 bits
_LONGEST = 10**18


@dataclass(frozen=True)
class Asked:
    """Options that say what a job answers, and what it may lose."""

    window: Annotated[str | None, typer.Option(help="answers are of windows of this length")] = None
    slide: Annotated[
        str | None, typer.Option(help="with --window: from one window's begin to the next", show_default="--window")
    ] = None
    session: Annotated[
        str | None, typer.Option(help="answers are of sessions, which end after a gap of this length")
    ] = None
    join: Annotated[
        str | None, typer.Option(help="answers are of pairs of two events at most so far apart; with --left and --key")
    ] = None
    event: Annotated[bool, typer.Option("--event", help="answers are of each event by itself")] = False
    left: Annotated[
        str | None,
        typer.Option(help="with --join: COLUMN=VALUE of the events that are one half; all others are the other"),
    ] = None
    key: Annotated[str | None, typer.Option(help="column by which answers are grouped")] = None
    value: Annotated[str | None, typer.Option(help="column of numbers whose sum is looked at, too")] = None
    lost: Annotated[
        str | None, typer.Option(help="advise a delay: at most this percent of the events may be lost, such as 0.1%")
    ] = None
    windows_wrong: Annotated[
        str | None,
        typer.Option(help="advise a delay: at most this percent of the windows, or of the sessions, may stay wrong"),
    ] = None
    allowed_lateness: Annotated[
        str | None, typer.Option(help="how long a window takes late events after its first answer", show_default="0s")
    ] = None

    def __post_init__(self) -> None:
        kinds = {"--window": self.window, "--session": self.session, "--join": self.join, "--event": self.event or None}
        named = [name for name, given in kinds.items() if given is not None]
        if len(named) != 1:
            choice = " and ".join(named) or "nothing that says what an answer is made of"
            raise UserError(f"found {choice}, allowed: one of {', '.join(kinds)}")
        (kind,) = named
        for name, given, of, needed in (
            ("--slide", self.slide, "--window", False),
            ("--allowed-lateness", self.allowed_lateness, "--window", False),
            ("--left", self.left, "--join", True),
            ("--windows-wrong", self.windows_wrong, "--window, --session", False),
        ):
            if given is not None and kind not in of.split(", "):
                raise UserError(f"{name}: found with {kind}, allowed: with {of}")
            if given is None and needed and kind == of:
                raise UserError(f"{name}: this option is missing; {of} wants it")
        if kind == "--join" and self.key is None:
            raise UserError("--key: this option is missing; --join wants it")
        if kind == "--event" and (self.key or self.value):
            raise UserError(
                f"--{'key' if self.key else 'value'}: found with --event, allowed: with --window, --session"
            )
        if self.lost is not None and self.windows_wrong is not None:
            raise UserError("--lost: found with --windows-wrong, allowed: one of both")

    def on(self, source: config.Source) -> tuple[config.Source, Question]:
        """The source that keeps the columns which are asked about, and the question in its ticks. Raises UserError."""
        key, value, left = self.key, self.value, None
        if key is not None:
            source, key = source_options.kept(source, key)
        if self.left is not None:
            column, half = self._half
            source, column = source_options.kept(source, column)
            left = f"{column}={half}"
        if value is not None:
            source, value = source_options.kept(source, value, "float64")
            if source.kinds[value] not in _NUMBERS:
                raise UserError(f"--value {self.value}: found {source.kinds[value]}, allowed: a column of numbers")
        return source, self._question(PS[source.tick], key, value, left)

    @property
    def _half(self) -> tuple[str, str]:
        column, equals, value = (self.left or "").partition("=")
        if not (column and equals):
            raise UserError(f"--left {self.left}: found no value, allowed: COLUMN=VALUE")
        return column, value

    def _question(self, ticks: int, key: str | None, value: str | None, left: str | None) -> Question:
        """The question in ticks of so many ps, about these columns."""
        window, slide, session, join, allowed = (
            0 if text is None else _ticks(f"--{name}", text, ticks)
            for name, text in (
                ("window", self.window), ("slide", self.slide or self.window), ("session", self.session),
                ("join", self.join), ("allowed-lateness", self.allowed_lateness),
            )
        )  # fmt: skip
        if window and window % slide:
            raise UserError(f"--slide {self.slide}: allowed: a whole part of --window {self.window}")
        kind: Answers = "event"
        if window:
            kind = "tumbling" if window == slide else "sliding"
        elif session or join:
            kind = "session" if session else "join"
        target: Target | None = "lost" if self.lost else "windows_wrong" if self.windows_wrong else None
        share = None if target is None else _share(target, self.lost or self.windows_wrong or "")
        return Question(
            answers=kind, length=window or session or join, slide=slide, key=key, value=value,
            left=left, allowed_lateness=allowed, target=target, share=share,
        )  # fmt: skip


@app.command()
@spread
def advise(
    files: Files,
    reading: Reading,
    asked: Asked,
    *,
    delay: Annotated[list[str] | None, typer.Option(help="say what this delay loses; may be repeated")] = None,
    by: Annotated[
        str | None, typer.Option(help="also advise on each value of this column alone, such as a device or a partition")
    ] = None,
    idle: Idle = None,
    page: Annotated[Path | None, typer.Option(help="also write the advice to this file, as a page of HTML")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="measure a system at the advised delay and its neighbours: minutes")
    ] = False,
    setting: advise_measuring.Setting,
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Say how long a job shall wait for late events: what each watermark delay loses, and which one to take."""
    if page is not None:
        workplace.require_writable("--page", page, files)
    source = source_options.with_parts(source_options.source(files, reading), by, idle)
    if measure:
        advise_measuring.check(source, asked.window, asked.key, asked.value, setting.system)
    advice = advised(source, asked, delay or [], master)
    measured = None
    if not as_json:
        show(advice)
    if measure:
        measured = advise_measuring.measured(*asked.on(source), advice, setting, as_json=as_json)
        if not as_json:
            show_measured(measured, advice.tick)
    if page is not None:
        from streamgauge.results.report import advice_page

        advice_page.write(advice, ", ".join(files), page, measured)
    if as_json:
        typer.echo(json.dumps(finite(as_json_object(advice) | measured_json(measured, advice.tick))))
    if measured and any(one.output == "wrong" for one in measured.delays):
        raise typer.Exit(1)


def advised(source: config.Source, asked: Asked, delays: Sequence[str], master: str | None = None) -> Advice:
    """The advice on a source. delays: those that its curve must have. Raises UserError."""
    source, question = asked.on(source)
    asked_ps = [options.duration("--delay", text).ps for text in delays]
    for text, ps in zip(delays, asked_ps, strict=True):
        if not 0 <= ps <= _LONGEST * PS[source.tick]:
            raise UserError(f"--delay: found {text}, allowed: 0s to {_LONGEST} {source.tick}")
    source = workplace.pinned(source)
    if not source.is_merged:
        raise UserError(f"out of order: {UNMERGED}; name its --arrival, or a topic that keeps append times")
    half = (question.left or "").partition("=")[0]
    columns = {"--key": question.key, "--value": question.value, "--left": half}
    with (
        options.of_columns({option: source.places.get(name or "") for option, name in columns.items()}),
        event_files.analyzed(source, master=master) as (workers, events, profile),
    ):
        from streamgauge.bench.engines.declared import late_rules
        from streamgauge.streams.advice.engines import with_engines
        from streamgauge.streams.stages import advise as stage

        bad = [f"{counted(profile.quarantined, 'bad line')} left out"] if profile.quarantined else []
        event_files.warn([*bad, *profile.doubts])
        _require_values(events, columns | {"--by": source.by})
        asked_ticks = [-(-ps // PS[profile.tick]) for ps in asked_ps]
        with workplace.progress("trying delays"):
            advice = stage.measure(workers, events, question, asked_ticks)
        with workplace.progress("asking what engines lose"):
            named = source.time.column if isinstance(source.time.column, str) else "ts"
            column = named.rpartition(".")[2] if source.is_json else named  # engines want a column at the top
            advice = with_engines(advice, late_rules(), events, asked_ticks, event_time=column, idle=_idle(profile))
        by_part = () if source.by is None else _by_part(events, question, source.by, profile.tick)
        return advice.model_copy(update={"hints": profile.hints, "by_part": by_part, "asked": tuple(asked_ticks)})


def _require_values(events: Artifact, columns: Mapping[str, str | None]) -> None:
    """Raises UserError if no event has a value in a column, such as a path that no JSON object has. Keys: options."""
    from streamgauge.streams.disorder.row_groups import has_values

    for option, name in columns.items():
        if name and not has_values(events.files(), name):
            raise UserError(f"{option}: found no value of {name} in any event, allowed: a column that events have")


def _by_part(events: Artifact, question: Question, column: str, tick: Tick) -> tuple[PartAdvice, ...]:
    """The advice on each part of the stream, if there are several, and not too many events."""
    from streamgauge.streams.advice import by_part
    from streamgauge.streams.advice.pieces import Stream

    stream = Stream.of(events.files(), question)
    if stream.events > by_part.MOST_EVENTS:
        event_files.warn([f"no advice by {column}: found {stream.events:,} events, allowed: {by_part.MOST_EVENTS:,}"])
        return ()
    with workplace.progress(f"advising on each {column}"):
        advices = by_part.of_stream(stream, column, tick)
    return advices if len(advices) > 1 else ()


def _idle(profile: Profile) -> int | None:
    """The time after which a part is idle, if one is; None if none is ever so."""
    by = profile.by_part
    return by.idle if by is not None and any((part.longest_idle or 0) >= by.idle for part in by.parts) else None


def _ticks(option: str, text: str, ticks: int) -> int:
    ps = options.duration(option, text).ps
    if ps % ticks or (ps <= 0 and option != "--allowed-lateness"):
        raise UserError(f"{option} {text}: allowed: a length of time above 0, in whole nanoseconds")
    return ps // ticks


def _share(target: Target, text: str) -> float:
    """A share that an option gives in percent, such as 0.1%."""
    number = text.strip().removesuffix("%").strip()
    if not re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", number, re.ASCII) or not 0 < float(number) < 100:
        raise UserError(
            f"--{target.replace('_', '-')}: found {text!r}, allowed: a percent above 0 and below 100, such as 0.1%"
        )
    return float(Fraction(number) / 100)
