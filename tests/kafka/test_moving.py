"""Rows of a job that goes on: moved behind those before, and told apart from them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from streamgauge.kafka.answers import offered
from streamgauge.kafka.moving import After, Mover
from tests.kafka.test_records import rows

US = 10**3


def test_rows_follow_those_of_the_trial_before_by_a_gap_and_keep_their_distances() -> None:
    given = [
        rows({}, False, {"seq": 3, "event_time": 5 * US}, {"seq": 4, "event_time": 2 * US}),
        rows({}, False, {"seq": 5, "event_time": 9 * US}, {"seq": -1, "event_time": 99 * US, "sentinel": True}),
    ]
    first = Mover(None, "ns")
    assert [first.moved(batch) for batch in given] == given
    assert (first.latest, first.seq) == (99 * US, 5)

    mover = Mover(After(first.latest, first.seq, 100 * US), "ns")
    moved = pa.Table.from_batches([mover.moved(batch) for batch in given])
    assert moved.column("event_time").to_pylist() == [202 * US, 199 * US, 206 * US, 296 * US]
    assert moved.column("event_ts").cast(pa.int64()).to_pylist() == [202, 199, 206, 296]
    assert moved.column("seq").to_pylist() == [9, 10, 11, -1]
    assert (mover.latest, mover.seq) == (296 * US, 11)


def test_rows_of_earlier_trials_count_as_warm_and_come_before_all_others(tmp_path: Path) -> None:
    for name, walls in (("a", [50, 40]), ("b", [45, 60]), ("now", [55, 70])):
        (tmp_path / name).mkdir()
        table = pa.table({"offered_wall": walls, "event_wall": [1, 2], "name": [name, name]})
        with pa.ipc.new_stream(str(tmp_path / name / "events-0.arrow"), table.schema) as out:
            out.write_table(table)
    assert offered(tmp_path / "now", 1, [tmp_path / "a", tmp_path / "b"]).to_pylist() == [
        {"offered_wall": 2, "event_wall": 2, "name": "a", "warm": True},
        {"offered_wall": 1, "event_wall": 1, "name": "a", "warm": True},
        {"offered_wall": 3, "event_wall": 3, "name": "b", "warm": True},
        {"offered_wall": 4, "event_wall": 4, "name": "b", "warm": True},
        {"offered_wall": 55, "event_wall": 1, "name": "now", "warm": False},
        {"offered_wall": 70, "event_wall": 2, "name": "now", "warm": False},
    ]
