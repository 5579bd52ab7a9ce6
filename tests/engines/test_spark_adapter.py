"""Spark's adapter around a Spark that answers as the test says."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import NotStruck, TrialSetup
from streamgauge.bench.engines.spark.settings import SparkSettings
from streamgauge.bench.engines.spark.spark_system import SparkSystem
from streamgauge.bench.workloads import Spec
from streamgauge.config import Workload


class Answering(SparkSystem):
    """Gives the answers of the test, and counts its starts."""

    answer: dict[str, Any] = {}  # noqa: RUF012 each test sets its own
    starts = 0

    def start(self) -> None:
        self.starts += 1

    def _begin(self, *_: object, resumed: bool = False) -> None:
        assert resumed

    def _ask(self, *_: object) -> dict[str, Any]:
        return self.answer


def adapter(place: Path, **settings: Any) -> Answering:
    made = Answering(SparkSettings(name="s", **settings), place)
    workload = Workload(name="w", query="passthrough")
    made._setup, made._spec = TrialSetup("t1", (), workload, {}, "ns", place, 1.0), Spec("passthrough")
    return made


@pytest.mark.parametrize(
    ("checkpoints", "here"),
    [
        (None, True), ("/data/checkpoints", True), ("file:/data", True), ("file:///data", True), ("hdfs:/data", False),
        ("s3a://bucket/data", False), ("hdfs://host:8020/data", False),
    ],
)  # fmt: skip
def test_spark_can_be_killed_where_its_checkpoints_are_on_this_host(checkpoints: str | None, here: bool) -> None:
    spared = SparkSettings(name="s", master="local[2]", checkpoints=checkpoints).spared
    assert [fault in spared for fault in ("kill", "rescale")] == [not here, not here]


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_micro_batches_that_the_checkpoint_alone_knows_are_taken_over(tmp_path: Path, scheme: str) -> None:
    offsets = tmp_path / "t1" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "7").write_text("\n".join(["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps({"0": 10})]))
    system = adapter(tmp_path / "work", checkpoints=f"{scheme}{tmp_path}")
    system.resume()
    assert system.starts == 1
    assert [batch["batch_id"] for batch in system._before] == [7]


@pytest.mark.parametrize(
    ("answer", "why"), [({}, "the system died: exit code 1"), ({"ok": False, "error": "no heap"}, "no heap")]
)
def test_a_spark_that_gives_no_account_is_not_struck(tmp_path: Path, answer: dict[str, Any], why: str) -> None:
    system = adapter(tmp_path)
    system.answer, system.failure = answer, None if answer else why
    with pytest.raises(NotStruck, match=rf"^Spark gives no account of its micro-batches: {why}$"):
        system.brace("kill")
    system.brace("restart")  # which loses none


def test_a_process_whose_query_did_not_end_takes_no_other_trial(tmp_path: Path) -> None:
    system = adapter(tmp_path)
    system.answer = {"ok": False, "error": "TimeoutException"}
    assert system.end_trial(1.0)["failure"] == "TimeoutException"
    assert (system.alive(), system.failure) == (False, "the query did not end: TimeoutException")


def test_a_start_that_fails_quotes_no_earlier_process_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, home, work = tmp_path / "scratch", tmp_path / "spark", tmp_path / "work"
    for folder in (scratch, home / "bin", home / "jars", work):
        folder.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    submit = home / "bin" / "spark-submit"
    submit.write_text("#!/bin/sh\nexit 7\n")
    (work / "system.log").write_text("java.lang.OutOfMemoryError: of an earlier one\n")
    system = SparkSystem(SparkSettings(name="s", spark_home=str(home)), work)
    with pytest.raises(UserError, match=r"^systems\.s: spark-submit cannot be started: .*Permission denied"):
        system.start()
    submit.chmod(0o700)
    with pytest.raises(UserError, match=r"^systems\.s: Spark did not start: spark-submit ended with code 7; see "):
        system.start()
    assert list(scratch.iterdir()) == []
