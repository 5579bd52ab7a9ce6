"""The commands compare and changes, which judge files of numbers without a benchmark file, Spark or a database."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from streamgauge.app.cli.common import AsJson, app, tell
from streamgauge.base.words import counted

#: with --exit-code: what a pipeline should stop at, and what nobody can tell; 2 and 3 are mistakes and outages
_WORSE, _UNKNOWN = 1, 4
ExitCode = Annotated[
    bool, typer.Option("--exit-code", help="exit with 1 if the values got worse, with 4 if they are inconclusive")
]


@app.command()
def compare(
    baseline: Annotated[Path, typer.Option(help="a file with one number a line")],
    candidate: Annotated[Path, typer.Option(help="a file with one number a line")],
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="the values are a rate, not a latency")
    ] = False,
    effect: Annotated[float, typer.Option(help="the smallest relative change that matters")] = 0.02,
    same: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--self", help="two files of an A/A run, which set the noise floor", show_default="none"),
    ] = None,
    exit_code: ExitCode = False,
    as_json: AsJson = False,
) -> None:
    """Judge a candidate against a baseline: a ratio, an interval that is valid for small samples, a verdict."""
    from streamgauge.app.nights.files import read_sample
    from streamgauge.stats import ab

    comparison = ab.compare(
        read_sample(baseline),
        read_sample(candidate),
        higher_is_better=higher_is_better,
        smallest_effect=effect,
        self_comparison=(read_sample(same[0]), read_sample(same[1])) if same else None,
    )
    code = {"worse": _WORSE, "inconclusive": _UNKNOWN}.get(comparison.verdict, 0) if exit_code else 0
    interval = f"{comparison.interval[0]:.4f} to {comparison.interval[1]:.4f}" if comparison.interval else "none"
    lines = [
        f"verdict            {comparison.verdict}: {comparison.reason}",
        f"ratio              {comparison.ratio:.4f}   interval ({comparison.confidence:.0%}) {interval}",
        f"noise floor        {_percent(comparison.noise_floor)}"
        f"   detectable effect {_percent(comparison.detectable_effect)}"
        f"   smallest that matters {_percent(comparison.smallest_effect)}",
        f"values             {comparison.n_baseline} and {comparison.n_candidate}",
    ]
    tell("\n".join(lines), asdict(comparison), as_json)
    raise typer.Exit(code)


@app.command()
def changes(
    file: Annotated[Path, typer.Argument(help="CSV of time,value; times: ISO-8601, epoch seconds or rising numbers")],
    segment: Annotated[int, typer.Option(help="least number of values on either side of a change")] = 4,
    magnitude: Annotated[float, typer.Option(help="the smallest relative step that matters")] = 0.02,
    alpha: Annotated[
        float, typer.Option(help="probability of a false alarm in a month in which this series is tested every night")
    ] = 0.01,
    series: Annotated[int, typer.Option(help="number of series looked at: each gets its share of alpha")] = 1,
    higher_is_better: Annotated[
        bool, typer.Option("--higher-is-better", help="for --exit-code: the values are a rate, not a latency")
    ] = False,
    exit_code: ExitCode = False,
    as_json: AsJson = False,
) -> None:
    """Find the change points of a history, with their magnitude and confidence."""
    from streamgauge.app.nights.files import read_history
    from streamgauge.stats.changes import find

    history = read_history(file)
    outcome = find(history.values, history.days, segment=segment, magnitude=magnitude, alpha=alpha, series=series)
    points = [{"time": history.times[c.index], "value": history.values[c.index], **asdict(c)} for c in outcome.changes]
    worse = any((change.magnitude < 0) == higher_is_better for change in outcome.changes)
    code = 0 if not exit_code else _WORSE if worse else _UNKNOWN if outcome.reason else 0
    lines = []
    for change in outcome.changes:
        interval = f" ({change.interval[0]:+.1%} to {change.interval[1]:+.1%})" if change.interval else ""
        lines.append(
            f"{history.times[change.index]}  {change.magnitude:+.1%}{interval}  {change.before:g} → {change.after:g}"
            f"  confidence {change.confidence:.4%}"
        )
    lines.append(
        outcome.reason
        or f"{counted(len(points), 'change point')} in {counted(outcome.n, 'value')}; "
        f"noise {_percent(outcome.noise)}, detectable within {segment} values {_percent(outcome.detectable)}; "
        f"{counted(len(history.gaps), 'gap')}"
    )
    gaps = [{"after": after, "before": before, "days": days} for after, before, days in history.gaps]
    tell("\n".join(lines), {**asdict(outcome), "changes": points, "gaps": gaps}, as_json)
    raise typer.Exit(code)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2%}"
