"""Texts of issues: one for each change of a series, from the night that is the first to judge it so.

A change has one id for all nights, though it may move a little while values are added. A later night writes its text
again only if the outcome is another one.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from streamgauge.app.nights.series import Series
from streamgauge.base.errors import UserError
from streamgauge.base.places import write_whole
from streamgauge.base.words import shown
from streamgauge.config import of_run
from streamgauge.records.judgement import Judgement, Rerun
from streamgauge.records.night import ISSUES
from streamgauge.records.series import Point
from streamgauge.stats.changes import SEGMENT

_TITLES = {
    "regression": "Regression: ",
    "improvement": "Improvement: ",
    "open": "Suspected change: ",
}
_MOST_COMMITS = 20


def write(run: Path, series: Sequence[Series]) -> list[Path]:
    """Writes the texts of the run's new changes; returns their files."""
    files = []
    for one in series:
        for judged in _new(one, run.name):
            (run / ISSUES).mkdir(exist_ok=True)
            files.append(run / ISSUES / f"{id_of(one, judged)}.md")
            write_whole(files[-1], text_of(one, judged, run.parent).encode())
    return files


def _new(one: Series, run_id: str) -> Iterator[Judgement]:
    """Yields what the run is the first to judge so; of several judgements of a change by the run, the last."""
    mine = {judged.changed_at: judged for judged in _judged(one) if judged.run_id == run_id}
    for judged in mine.values():
        earlier = [other.outcome for other in _same(one, judged) if other.run_id != run_id]
        if judged.outcome not in earlier:
            yield judged


def _judged(one: Series) -> list[Judgement]:
    return [judged for judged in one.judged if judged.outcome in _TITLES and isinstance(judged.evidence, Rerun)]


def _same(one: Series, judged: Judgement) -> list[Judgement]:
    """Judgements of the same change: a change moves by less than the shortest level."""
    place = one.place_of(judged.changed_at)
    return [other for other in _judged(one) if abs(one.place_of(other.changed_at) - place) < SEGMENT]


def id_of(one: Series, judged: Judgement) -> str:
    """Id of the change (12 hex digits): of its series, and of where the first night saw it, wherever later ones do."""
    nights = {point.run_id: point.at for point in one.points}
    first = min([*_same(one, judged), judged], key=lambda other: (nights.get(other.run_id, ""), other.changed_at))
    return hashlib.sha256(f"{one.head.key} {first.changed_at}".encode()).hexdigest()[:12]


def text_of(one: Series, judged: Judgement, runs: Path) -> str:
    """Text of an issue in Markdown; its first line is the title. runs: where each run has kept its benchmark."""
    assert isinstance(judged.evidence, Rerun)
    change, place = judged.evidence.change, one.place_of(judged.changed_at)
    before, after = one.sound[place - 1], one.sound[place]
    what = f"{one.head.metric} of {one.head.benchmark} {one.subject.name}"
    rows = {
        "what": what,
        "machine": one.head.machine_text,
        "from": f"{shown(change.before)} {one.head.unit}",
        "to": f"{shown(change.after)} {one.head.unit}",
        "change": _interval(change.magnitude, change.interval),
        "rerun": _rerun(judged.evidence),
        "last run before": f"{before.run_id}, {before.at}",
        "first run after": f"{after.run_id}, {after.at}",
        "series": one.head.key,
        "id": id_of(one, judged),
    }
    title = f"# {_TITLES[judged.outcome]}{what} {_percent(change.magnitude)} since {after.at[:10]}"
    table = ["| | |", "|---|---|", *(f"| {name} | {_cell(text)} |" for name, text in rows.items())]
    edits = _edits(runs, before.run_id, after.run_id, one.head.system)
    between = [*_between(before, after), *edits] or ["Nothing of what is recorded has changed."]
    return "\n".join([title, "", *table, "", "## What changed between these runs", "", *between, ""])


def _rerun(evidence: Rerun) -> str:
    if (compared := evidence.comparison) is None:
        return f"none: {evidence.why}"
    interval = compared.interval and (compared.interval[0] - 1, compared.interval[1] - 1)
    return f"{_interval(compared.ratio - 1, interval)} against {evidence.against}"


def _interval(value: float, interval: tuple[float, float] | None) -> str:
    if interval is None:
        return _percent(value)
    return f"{_percent(value)} (95 % interval {_percent(interval[0])} to {_percent(interval[1])})"


def _percent(value: float) -> str:
    return f"{100 * value:+.1f} %"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _between(before: Point, after: Point) -> Iterator[str]:
    """Yields a line for each recorded property that differs, and the commits between if they are known here."""
    for name in sorted(before.software.keys() | after.software.keys()):
        old, new = before.software.get(name), after.software.get(name)
        if old != new:
            yield f"- {name}: {old if old is not None else 'none'} → {new if new is not None else 'none'}"
            if name == "commit" and old and new:
                yield from (f"  - {_cell(line)}" for line in commits(str(old), str(new)))


def _edits(runs: Path, before: str, after: str, system: str) -> Iterator[str]:
    """Yields a line for each setting of the system that differs between the benchmarks that both runs have kept."""
    try:
        kept = [of_run(runs / run) for run in (before, after)]
    except UserError:  # an earlier version's, or that of another host
        return
    old, new = (
        {one.name: one.model_dump(mode="json") for one in benchmark.systems}.get(system, {}) for benchmark in kept
    )
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            yield f"- setting {name} of {system}: {_cell(str(old.get(name)))} → {_cell(str(new.get(name)))}"


def commits(old: str, new: str, repository: Path = Path(__file__).parent) -> list[str]:
    """Commits of this program after old up to new, newest first; or the command that lists them."""
    between = f"{old.rstrip('+')}..{new.rstrip('+')}"
    if not re.fullmatch(r"[0-9a-f]{4,64}\.\.[0-9a-f]{4,64}", between):  # git would take -… for an option
        return []
    command = ["git", "-C", str(repository), "log", "--oneline", f"--max-count={_MOST_COMMITS + 1}", between, "--"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return [f"`git log --oneline {between}` lists the commits; this host does not have them"]
    more = [f"… `git log --oneline {between}` lists all"] if len(lines) > _MOST_COMMITS else []
    return [*lines[:_MOST_COMMITS], *more]
