"""The progress of a Spark query, from the files of its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path

from streamgauge.bench.publish.progress import Checkpoint, Reached


def batch(folder: Path, log: str, number: int, *sources: object) -> None:
    (folder / log).mkdir(exist_ok=True)
    lines = ["v1", json.dumps({"batchWatermarkMs": 0}), *(json.dumps(source) for source in sources)]
    (folder / log / str(number)).write_text("\n".join(lines))


def test_rows_are_planned_by_the_newest_offsets_and_committed_by_the_newest_commit(tmp_path: Path) -> None:
    spark = Checkpoint(tmp_path, "in")
    assert not spark.begun()
    assert spark.reached() == Reached({}, {}, True)
    batch(tmp_path, "offsets", 0, {"in": {"0": 10, "1": 7}})
    assert spark.begun()
    assert spark.reached() == Reached({0: 10, 1: 7}, {}, False)
    batch(tmp_path, "commits", 0)
    batch(tmp_path, "offsets", 1, {"in": {"0": 15, "1": 7}})
    (tmp_path / "offsets" / ".2.tmp").write_text("half of it")
    assert spark.reached() == Reached({0: 15, 1: 7}, {0: 10, 1: 7}, False)
    batch(tmp_path, "commits", 1)
    assert spark.reached() == Reached({0: 15, 1: 7}, {0: 15, 1: 7}, True)


def test_other_topics_of_the_query_do_not_count(tmp_path: Path) -> None:
    batch(tmp_path, "offsets", 12, {"other": {"0": 99}}, {"in": {"0": 3}})
    assert Checkpoint(tmp_path, "in").reached().planned == {0: 3}


def test_a_batch_that_spark_has_cleaned_up_keeps_its_offsets(tmp_path: Path) -> None:
    batch(tmp_path, "offsets", 0, {"in": {"0": 3}})
    spark = Checkpoint(tmp_path, "in")
    assert spark.reached().planned == {0: 3}
    (tmp_path / "offsets" / "0").write_text("")
    assert spark.reached().planned == {0: 3}
