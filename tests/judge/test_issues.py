"""Texts of issues: whole texts of a history written by hand; one for each change, whatever number of nights sees it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.nights import issues
from streamgauge.app.nights.series import Series
from streamgauge.catalog import results
from streamgauge.records.judgement import Judgement, Outcome, Rerun
from streamgauge.results.index import Index
from streamgauge.stats.outcomes import Change, Comparison
from tests.index import example

CHANGE = Change(10, 0.125, (0.101, 0.15), 0.9999, 400.0, 450.0)
COMPARISON = Comparison(1.12, (1.09, 1.15), "worse", "", 0.01, 0.02, 0.03, 0.02, 8, 8)
CONFIRMED = Rerun(change=CHANGE, comparison=COMPARISON, against="the settings of n10")
NOT_RERUN = Rerun(change=CHANGE, why="no sustainable rate is known")


def night(artifacts: Path, number: int, **more: Any) -> Path:
    name, at = f"n{number:02}", f"2026-03-{number:02}T02:00:00+00:00"
    software = {"spark": "4.3.0" if number < 11 else "4.3.1", "commit": "aaaa" if number < 11 else "bbbb", "java": "17"}
    value = 400.0 if number < 11 else 450.0
    return example.run(artifacts, name, example.result(name, value, at=at, software=software, **more))


@pytest.fixture
def fifteen(tmp_path: Path) -> Path:
    for number in range(1, 16):
        night(tmp_path, number)
    return tmp_path


def judged(artifacts: Path, run: int, day: int, outcome: Outcome, evidence: Rerun) -> dict[str, str]:
    """Texts that the night writes after this judgement, by their ids."""
    directory = artifacts / "runs" / f"n{run:02}"
    index = Index(f"sqlite:///{artifacts / 'results.db'}")
    index.rebuild((artifacts / "runs").iterdir())
    (head,) = index.series()
    moment = f"2026-03-{day:02}T02:00:00+00:00"
    results.judge(directory, Judgement(directory.name, head.key, moment, outcome, 0.125, evidence))
    index.add_run(directory)
    return {file.stem: file.read_text() for file in issues.write(directory, [Series.of(index, head)])}


def test_a_text_says_what_changed_by_how_much_and_what_lies_between(fifteen: Path) -> None:
    ((key, text),) = judged(fifteen, 15, 11, "regression", CONFIRMED).items()
    (series,) = Index(f"sqlite:///{fifteen / 'results.db'}").series()
    assert (
        text
        == f"""\
# Regression: event_latency_ms_p99 of flights late20 sums spark streaming +12.5 % since 2026-03-11

| | |
|---|---|
| what | event_latency_ms_p99 of flights late20 sums spark streaming |
| machine | Example 1, 2 cores |
| from | 400 ms |
| to | 450 ms |
| change | +12.5 % (95 % interval +10.1 % to +15.0 %) |
| rerun | +12.0 % (95 % interval +9.0 % to +15.0 %) against the settings of n10 |
| last run before | n10, 2026-03-10T02:00:00+00:00 |
| first run after | n11, 2026-03-11T02:00:00+00:00 |
| series | {series.key} |
| id | {key} |

## What changed between these runs

- commit: aaaa → bbbb
  - `git log --oneline aaaa..bbbb` lists the commits; this host does not have them
- spark: 4.3.0 → 4.3.1
"""
    )


def test_a_change_has_one_text_until_its_outcome_is_another(fifteen: Path) -> None:
    ((key, text),) = judged(fifteen, 12, 11, "open", NOT_RERUN).items()
    assert "# Suspected change: " in text
    assert "| rerun | none: no sustainable rate is known |" in text
    assert judged(fifteen, 13, 12, "open", NOT_RERUN) == {}, "it moved by a night, and is the same change"
    ((again, text),) = judged(fifteen, 14, 12, "regression", CONFIRMED).items()
    assert (again, text.split(":")[0]) == (key, "# Regression")
    ((other, _),) = judged(fifteen, 15, 4, "improvement", CONFIRMED).items()
    assert other != key
    assert judged(fifteen, 15, 8, "refuted", CONFIRMED).keys() <= {other}, "what was refuted has no text"


@pytest.mark.parametrize("later", [9, 11, 13])
def test_a_change_keeps_its_id_wherever_a_later_night_sees_it(fifteen: Path, later: int) -> None:
    (key,) = judged(fifteen, 14, 11, "open", NOT_RERUN)
    ((again, text),) = judged(fifteen, 15, later, "regression", CONFIRMED).items()
    assert (again, text.split(":")[0]) == (key, "# Regression")


def test_a_night_that_is_judged_again_writes_the_same_files(fifteen: Path) -> None:
    first = judged(fifteen, 15, 11, "open", NOT_RERUN)
    second = judged(fifteen, 15, 11, "open", NOT_RERUN)
    assert first == second
    assert [file.stem for file in (fifteen / "runs" / "n15" / "issues").iterdir()] == list(first)


def test_commits_are_listed_where_they_are_known(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout.strip()

    git("init", "-q")
    for number in range(25):
        git("commit", "-q", "--allow-empty", "-m", f"change {number}")
    last, third, first = git("rev-parse", "HEAD"), git("rev-parse", "HEAD~22"), git("rev-parse", "HEAD~24")
    short = [git("rev-parse", "--short", f"HEAD~{number}") for number in (22, 23)]
    assert issues.commits(first, f"{third}+", tmp_path) == [f"{short[0]} change 2", f"{short[1]} change 1"]
    many = issues.commits(first, last, tmp_path)
    assert issues.commits("--output=x", last, tmp_path) == []
    assert (len(many), many[-1]) == (21, f"… `git log --oneline {first}..{last}` lists all")
