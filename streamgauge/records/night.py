"""The records of a night: its report, `nightly.json`, and where that was delivered, `notices.jsonl`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from streamgauge.records.judgement import Outcome
from streamgauge.records.record import Line, Record

#: folder in a run's directory: the text of an issue, ID.md, for each change that the night is the first to judge so
ISSUES = "issues"
State = Outcome | Literal["failed", "error", "waiting", "outgrown", "missing"]


@dataclass(frozen=True)
class NightLine:
    """A line of a night's report: what it is about, and a sentence."""

    state: State
    what: str
    said: str

    def __str__(self) -> str:
        return f"{self.state}: {self.what}: {self.said}"


class NightReport(Record):
    """Content of nightly.json. complete: False while the night is judged."""

    benchmark: str
    run_id: str
    state: Literal["good", "open", "bad"]
    complete: bool
    lines: tuple[NightLine, ...] = ()


class Delivery(Line):
    """A channel that has the night's report."""

    channel: str
