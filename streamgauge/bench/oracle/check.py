"""Checks the output of a trial against DuckDB's answer on the same events.

Of the engine's own account, only the rows that each micro-batch took are trusted, and watermarks that no row implies.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from streamgauge.base.words import counted
from streamgauge.bench.oracle.batches import late_reported, logs_of
from streamgauge.bench.oracle.duck import size_and_checksum
from streamgauge.bench.oracle.late_rows import expectation
from streamgauge.bench.workloads import Spec
from streamgauge.records.rules import Counted, Rules
from streamgauge.records.trial import Reports, SystemFigures


@dataclass(frozen=True)
class Check:
    """Expected and reported sizes, checksums and late drops; the engine's batches imply the expected drops."""

    expected_rows: int
    reported_rows: int
    expected_checksum: int
    reported_checksum: int
    expected_late: int
    reported_late: int | None  # None: it is not known
    late_counted: Counted
    watermarks_checked: bool  # False: they follow a clock that is in no row, and are taken as logged
    wrong_watermark: str | None
    late_events: int = 0  # events in no window at all: comparable between engines
    early_events: int = 0  # of them, those before the engine's first watermark, such as 1970

    @property
    def wrong(self) -> str | None:
        """Reason why the output is wrong; None if it is right. A wrong watermark comes first: others follow from it."""
        if self.wrong_watermark is not None:
            return self.wrong_watermark
        if self.expected_rows != self.reported_rows:
            return f"output wrong: {counted(self.reported_rows, 'row')}, {self.expected_rows} expected"
        if self.expected_checksum != self.reported_checksum:
            return f"output wrong: {counted(self.reported_rows, 'row')} as expected, but with other values"
        if self.reported_late not in (None, self.expected_late):
            late = "groups" if self.late_counted == "groups" else "events"
            return f"late {late}: {self.reported_late} reported as dropped, {self.expected_late} expected"
        return None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"wrong": self.wrong}


def check(rows: pa.Table, figures: SystemFigures, reports: Reports, spec: Spec, rules: Rules) -> Check:
    """Compares a trial's output with the oracle's answer.

    rows: all that was offered (see late_rows.expectation); figures: those of end_trial; reports: bodies of all epochs;
    rules: those that the adapter declares. Raises ValueError if the figures lack batches or rows, or if the answer
    exceeds 64 bits.
    """
    wanted = expectation(rows, logs_of(figures), spec, rules)
    size, total = size_and_checksum(wanted)
    return Check(
        expected_rows=size,
        reported_rows=sum(body["rows"] for body in reports),
        expected_checksum=total,
        reported_checksum=sum(body.get("checksum") or 0 for body in reports) % 2**64,
        expected_late=wanted.late,
        reported_late=late_reported(figures, reports),
        late_counted=rules.late_counted,
        watermarks_checked=wanted.watermarks_checked,
        wrong_watermark=wanted.wrong_watermark,
        late_events=wanted.late_events,
        early_events=wanted.early_events,
    )
