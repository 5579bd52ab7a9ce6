"""The verdict of a gate as a comment on a pull request: Markdown, with a picture of characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamgauge.bench.compare.release_forms import MARKS, cases, cell
from streamgauge.records.gate import GateCheck, GateSeries

#: characters from the picture's left end to its right end
_WIDTH = 61
_SIGNS = {"go": "✅", "no-go": "❌", "inconclusive": "❓"}


def as_comment(check: GateCheck) -> str:
    """Renders the verdict, what could have been seen, a picture, and a table of reasons and series."""
    same = " They are the same commit: an A/A check." if check.base_commit == check.head_commit else ""
    lines = [
        f"## {_SIGNS[check.verdict]} Streamgauge gate: {check.verdict}",
        "",
        check.line,
        "",
        f"Head `{check.candidate}` against merge base `{check.baseline}`, pairs of fresh processes: "
        f"{check.pairs}.{same}",
        sentence(check),
        "",
    ]
    measured = [one for one in check.series if one.interval is not None]
    if measured:
        lines += ["```text", *_pictures(measured), "```", ""]
    lines += ["| | what | why |", "|---|---|---|"]
    names = {one.name for one in check.series}  # a series that has not passed is a reason, too
    for kind, what, state, why in cases(check):
        if kind == "series" or what not in names:
            lines.append(f"| {MARKS[state]} | {cell(f'{kind}: {what}')} | {cell(why)} |")
    if check.accepted:
        lines += ["", *(f"- {entry}" for entry in accepted_lines(check))]
    lines += ["", f"_{spent(check)}_"]
    return "\n".join(lines) + "\n"


def sentence(check: GateCheck) -> str:
    """Says which slowdown of each series could have been seen, and how often an equal commit is called slower."""
    seen = [f"{one.name} {100 * one.seen:.1f} %" for one in check.series if one.seen is not None]
    if not seen:
        return "Too little was measured to tell which slowdown would have been seen. Allow more minutes or fewer cells."
    return (
        f"Slowdowns that would have been seen with {check.power:.0%} power: {', '.join(seen)}. "
        f"An equal commit is called slower in at most {check.false_alarm:.0%} of gates."
    )


def spent(check: GateCheck) -> str:
    """Says what took how many minutes."""
    parts = [f"{name} {minutes:.1f}" for name, minutes in check.minutes.items() if minutes >= 0.05]
    total = sum(check.minutes.values())
    return f"{total:.1f} minutes: {', '.join(parts) or 'all short'} (budget {check.budget_minutes:g})"


def accepted_lines(check: GateCheck) -> Iterator[str]:
    """Yields a line for each entry of accepted.yaml."""
    what = {
        "counts": "counts until {0}",
        "expired": "**expired** on {0}, so it does not count",
        "in the base": "is in the base",
    }
    for one in check.accepted:
        state = what[one.state].format(one.until)
        yield f"accepted: {one.slower_percent:g} % slower, {state} ({one.author}: {one.reason})"


def _pictures(series: Sequence[GateSeries]) -> Iterator[str]:
    """Yields the lines of a picture: faster is left of 0, slower right of it, on one scale for all."""
    reach = max(1.3 * one.tolerance for one in series)
    for one in series:
        reach = max(reach, *(abs(end - 1) for end in one.interval or ()), *map(abs, one.slowdowns))
    middle = _WIDTH // 2

    def place(part: float) -> int:
        return middle + round(part / reach * middle)

    scale = [" "] * _WIDTH
    for text, at in (("faster", 0), ("0", middle), ("slower", _WIDTH - 6)):
        scale[at : at + len(text)] = text
    yield "".join(scale)
    for one in series:
        low, high = (place(end - 1) for end in one.interval or (1.0, 1.0))
        line = ["·"] * _WIDTH
        line[low : high + 1] = "━" * (high - low + 1)
        line[middle], line[place(one.accepted + one.tolerance)] = "│", "┃"
        line[place((one.ratio or 1.0) - 1)] = "●"
        pairs = [" "] * _WIDTH
        for slowdown in one.slowdowns:
            pairs[place(slowdown)] = "x"
        yield f"{''.join(line)}  {one.name}: {percent(one)}"
        yield f"{''.join(pairs).rstrip():{_WIDTH}}  x: each pair; ┃: must not be merged"


def percent(one: GateSeries) -> str:
    """The slowdown with its interval, such as "+2.1 % (-0.4 to +4.7)"."""
    if one.ratio is None or one.interval is None:
        return one.reason
    low, high = one.interval
    return f"{100 * (one.ratio - 1):+.1f} % ({100 * (low - 1):+.1f} to {100 * (high - 1):+.1f})"
