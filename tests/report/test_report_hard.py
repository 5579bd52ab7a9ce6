"""The hard queries on the page, from a hand-written record."""

from __future__ import annotations

from typing import Any

from streamgauge.records.answers import HardQueries
from streamgauge.results.report.blocks import Chart, Hole, Table, Text
from streamgauge.results.report.hard_section import section


def operator(rows: int, late: int, eviction: int, dropped: int = 0) -> dict[str, Any]:
    return {
        "name": "state", "rows": rows, "bytes": 1000 * rows, "dropped": dropped, "late_ms": late,
        "eviction_ms": eviction,
    }  # fmt: skip


def batch(number: int, given: int, watermark: int, operators: list[Any], output: list[Any]) -> dict[str, Any]:
    return {
        "batch": number, "input_rows": given, "output_rows": len(output), "watermark_ms": watermark,
        "operators": operators, "output": output,
    }  # fmt: skip


END = 10**12
RECORD: dict[str, Any] = {
    "version": 1,
    "system": "spark",
    "disorder_percent": 20.0,
    "events": 400,
    "disorder": 0.2,
    "longest_delay_s": 60,
    "queries": [
        {"query": "chained_windows", "mode": "batch", "status": "correct", "rows": 9, "hash": "ab", "seconds": 0.5},
        {
            "query": "chained_windows", "mode": "streaming", "status": "wrong", "rows": 8, "hash": "cd", "seconds": 2.0,
            "late_drops_expected": 3, "late_drops_reported": 2,
            "batches": [
                batch(0, 2, 0, [operator(2, 0, 0), operator(1, 0, 0)], []),
                batch(1, 1, 4000, [operator(1, 0, 4000), operator(2, 0, 4000)], []),
                batch(2, 0, END, [operator(0, 4000, END), operator(1, 4000, END)], []),
            ],
        },
        {"query": "sessions", "mode": "batch", "status": "unsupported", "why": "no sessions here"},
    ],
    "example": [
        {
            "name": "one watermark for all",
            "given": [[[6, 1], [4, 2]], [[7, 4]]],
            "batches": [
                batch(0, 2, 0, [operator(1, 0, 0), operator(0, 0, 0)], []),
                batch(1, 1, 2000, [operator(2, 2000, 2000), operator(0, 2000, 2000)], []),
                batch(2, 1, 4000, [operator(2, 4000, 4000), operator(0, 4000, 4000, 1)], []),
                batch(3, 0, END, [operator(0, END, END), operator(0, END, END)], [{"groups": "1", "total": "6"}]),
            ],
        }
    ],
}  # fmt: skip


def hard(record: dict[str, Any]) -> HardQueries:
    return HardQueries.stored(record, "hard-spark-20.json")


def test_answers_state_and_watermarks_are_shown() -> None:
    answers, state, watermarks = section([hard(RECORD)]).parts[0].blocks
    assert isinstance(answers, Table)
    assert [(row[0], row[1], row[2].text, row[2].state) for row in answers.rows if isinstance(row[2], Text)] == [
        ("chained_windows", "batch", "correct", "good"),
        ("chained_windows", "streaming", "wrong", "bad"),
        ("sessions", "batch", "unsupported", "bad"),
    ]
    assert isinstance(state, Chart)
    assert state.table.rows == [["chained_windows", "3 / 3", "3 / 3", "1 / 1"]]
    assert isinstance(watermarks, Chart)
    assert [trace["y"] for trace in watermarks.figure["data"]] == [[None, None], [None, 4], [None, None], [None, 4]]


def test_the_worked_example_tells_what_came_in_what_was_lost_and_what_came_out() -> None:
    _, example = section([hard(RECORD)]).parts
    beside, case = example.blocks
    assert isinstance(beside, Table)
    assert beside.columns == ["batch", "values", "result with one watermark for all"]
    assert [row[2] for row in beside.rows] == [
        "nothing", "nothing", Text("nothing, 1 lost", "bad"), "6 from 1 of 2 windows",
    ]  # fmt: skip
    assert isinstance(case, Table)
    shown = [[cell.text if isinstance(cell, Text) else cell for cell in row] for row in case.rows]
    assert [[str(cell).replace("\u00a0", " ") for cell in row] for row in shown] == [
        ["0", "6 at 1 s, 4 at 2 s", "late 0 s, ends 0 s", "late 0 s, ends 0 s", "nothing"],
        ["1", "7 at 4 s", "late 2 s, ends 2 s", "late 2 s, ends 2 s", "nothing"],
        ["2", "sentinel", "late 4 s, ends 4 s", "late 4 s, ends 4 s, 1 lost", "nothing"],
        ["3", "no rows", "late the end, ends the end", "late the end, ends the end", "6 from 1 of 2 windows"],
    ]


def test_without_a_query_of_two_operators_the_page_has_a_hole() -> None:
    unsupported = {"query": "chained_windows", "mode": "streaming", "status": "unsupported", "hash": None, "why": "no"}
    sessions = {**RECORD["queries"][1], "query": "sessions"}
    sessions["batches"] = [{**one, "operators": one["operators"][:1]} for one in sessions["batches"]]
    record = {**RECORD, "queries": [unsupported, sessions]}
    answers, _, watermarks = section([hard(record)]).parts[0].blocks
    assert isinstance(watermarks, Hole)
    assert isinstance(answers, Table)
    assert [cell.text for cell in answers.rows[0] if isinstance(cell, Text)] == ["unsupported", ""]
