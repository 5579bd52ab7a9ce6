"""False claims of a trial about itself are found, each with its own message."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamgauge.base.histogram import Histogram
from streamgauge.bench.engines.spark.queries import rules
from streamgauge.bench.oracle.batches import BatchLog, taken_by
from streamgauge.bench.oracle.check import Check, check
from streamgauge.bench.oracle.checksum import checksum
from streamgauge.bench.oracle.late_rows import counted
from streamgauge.bench.oracle.session_deals import numbered
from streamgauge.bench.workloads import Spec
from streamgauge.records.driver import ReportBody
from streamgauge.records.trial import SystemFigures
from tests.engines.hand import row, table

AGGREGATION = Spec("windowed_aggregation", "name", "amount", window_us=10_000_000)
OUTER = Spec("outer_join", "name", None, window_us=10_000_000)
#: the fourth is late: its batch is judged by 25 s, of the second; the last is of nobody
ROWS = [
    row(0, 5, "a", 3),
    row(1, 25, "a", 4),
    row(2, 26, "a", 5),
    row(3, 6, "a", 9),
    row(4, 30, "b", 6),
    row(5, 31, None),
]
#: of each batch: the first row of the next, its watermark, what it dropped
BATCHES = [(2, 0, 0), (3, 25_000, 0), (4, 26_000, 1), (7, 26_000, 0), (7, 99_000, 0)]
SUMS = pa.table(
    {
        "window_start": pa.array([0, 20, 30, 30], pa.timestamp("s")),
        "window_end": pa.array([10, 30, 40, 40], pa.timestamp("s")),
        "key": ["a", "a", "b", None],
        "events": [1, 2, 1, 1],
        "total": [3, 9, 6, 1],
        "mean": [3.0, 4.5, 6.0, 1.0],
    }
)


def checked(output: pa.Table, batches: list[tuple[int, int, int]] = BATCHES, spec: Spec = AGGREGATION) -> Check:
    """Check of a trial with this output and this log; its frames, if there are two, took the same rows."""
    offered = pa.Table.from_batches([table(ROWS)])
    for name, values in {"partition": [0] * len(ROWS), "row": range(len(ROWS))}.items():
        offered = offered.append_column(name, pa.array(values, pa.int64()))
    frames = 2 if spec.query == "outer_join" else 1
    figures: SystemFigures = {
        "batches": [
            {"batch_id": number, "ends": [{"0": end}] * frames, "watermark_ms": watermark, "dropped": dropped}
            for number, (end, watermark, dropped) in enumerate(batches)
        ],
    }
    report: ReportBody = {
        "rows": output.num_rows, "checksum": checksum(output), "event_latency": Histogram().to_dict(),
        "processing_latency": Histogram().to_dict(),
    }  # fmt: skip
    return check(offered, figures, [report], spec, rules(spec))


def test_a_right_trial_is_right() -> None:
    found = checked(SUMS)
    assert (found.wrong, found.expected_late, found.late_counted, found.watermarks_checked) == (None, 1, "groups", True)
    assert found.to_dict()["wrong"] is None


def other(name: str, *values: Any) -> pa.Table:
    place = SUMS.column_names.index(name)
    return SUMS.set_column(place, name, pa.array(values, SUMS.schema.field(name).type))


VALUES = "output wrong: 4 rows as expected, but with other values"
WRONG = {
    "a row of a null key was dropped": (SUMS.slice(0, 3), "output wrong: 3 rows, 4 expected"),
    "a null came out as a text": (other("key", "a", "a", "b", ""), VALUES),
    "a null came out for a value": (other("total", 3, 9, 6, None), VALUES),
    "NaN came out for a value": (other("mean", 3.0, 4.5, 6.0, float("nan")), VALUES),
    "two columns were swapped": (
        SUMS.rename_columns(["window_start", "window_end", "key", "total", "events", "mean"]),
        VALUES,
    ),
    "a column is missing": (SUMS.drop_columns(["mean"]), VALUES),
    "a late event was counted": (other("total", 12, 9, 6, 1), VALUES),
    "the last bit of a mean": (other("mean", 3.0, 4.5, 6.000000000000001, 1.0), VALUES),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_output_is_found(fault: str) -> None:
    output, told = WRONG[fault]
    assert checked(output).wrong == told


@pytest.mark.parametrize(
    ("batch", "change", "told"),
    [
        (1, (3, 24_000, 0), "watermark of batch 1: the engine logged 24000 ms, its rows imply 25000 ms"),
        (3, (7, 25_999, 0), "watermark of batch 3: the engine logged 25999 ms, its rows imply 26000 ms"),
        (4, (7, 40_999, 0), "watermark of batch 4: the engine logged 40999 ms, its rows imply at least 41000 ms"),
        (2, (4, 26_000, 0), "late groups: 0 reported as dropped, 1 expected"),
    ],
)
def test_a_wrong_claim_is_found(batch: int, change: tuple[int, int, int], told: str) -> None:
    log = [*BATCHES[:batch], change, *BATCHES[batch + 1 :]]
    assert checked(SUMS, log).wrong == told


def test_swapped_sides_of_a_join_and_a_lost_null_are_found() -> None:
    """Events of even seq form the left half. Events 1 and 2 meet, 3 is late, and 5, of a null key, meets nobody."""
    right = pa.table(
        {
            "window_start": pa.array([0, 20, 30], pa.timestamp("s")),
            "window_end": pa.array([10, 30, 40], pa.timestamp("s")),
            "key": ["a", "a", "b"],
            "left_seq": [0, 2, 4],
            "right_seq": pa.array([None, 1, None], pa.int64()),
        }
    )
    log = [(end, watermark, int(number == 2)) for number, (end, watermark, _) in enumerate(BATCHES)]
    assert checked(right, log, OUTER).wrong is None
    swapped = right.rename_columns(["window_start", "window_end", "key", "right_seq", "left_seq"])
    assert checked(swapped, log, OUTER).wrong == "output wrong: 3 rows as expected, but with other values"
    assert checked(right.slice(1), log, OUTER).wrong == "output wrong: 2 rows, 3 expected"


def test_a_queue_that_an_account_leaves_out_stands_where_it_stood() -> None:
    rows = pa.table({"partition": [0, 0, 0, 1], "row": [0, 1, 2, 0]})
    ends: list[dict[int, int]] = [{0: 1, 1: 1}, {1: 1}, {0: 3}]
    logs = [BatchLog(number, (end,), 0) for number, end in enumerate(ends)]
    assert taken_by(rows, logs).tolist() == [0, 2, 2, 0]


def test_both_zeros_are_one_key_where_groups_are_counted_and_sessions_dealt() -> None:
    keys = pa.chunked_array([pa.array([0.0, -0.0, None, 1.5])])
    assert numbered(keys).tolist() == [0, 0, 1, 2]
    rows = pa.Table.from_batches([table([row(0, 1), row(1, 2)])])
    rows = rows.set_column(rows.column_names.index("name"), "name", pa.array([0.0, -0.0]))
    both = np.ones(2, bool)
    assert counted(rows, np.zeros(2, np.int64), both, 0, AGGREGATION.tumbling()[0]) == 1


def test_a_log_without_all_rows_is_no_basis() -> None:
    with pytest.raises(ValueError, match="taken by no batch"):
        checked(SUMS, BATCHES[:3])
