"""The application that runs trials in Spark, in the session of the tests and fed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from streamgauge.bench.engines.spark.application import MANAGER, Application
from streamgauge.bench.workloads import Spec
from tests.engines.hand import HandDriver, row

pytestmark = pytest.mark.spark

OWN = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"


@pytest.fixture
def driver() -> Iterator[HandDriver]:
    hand = HandDriver()
    hand.offer([row(n, n) for n in range(10)])
    yield hand
    hand.close()


def command(driver: HandDriver, place: Path, **more: Any) -> dict[str, Any]:
    return {
        "attempt": driver.attempt, "endpoints": [asdict(driver.endpoint)], "spec": Spec("passthrough").to_dict(),
        "checkpoint": str(place / "check"), "resumed": False, "batch_rows": 5, "trigger_ms": 0, "link": "python",
        "mode": "micro-batch", **more,
    }  # fmt: skip


def begun(spark: Any, driver: HandDriver, place: Path) -> Application:
    application = Application(spark, "filesystem")
    assert application.begin(command(driver, place)) == {}
    assert driver.ready.is_set()
    return application


def test_what_was_offered_is_processed_before_a_trial_ends(spark: Any, driver: HandDriver, tmp_path: Path) -> None:
    application = begun(spark, driver, tmp_path)
    driver.offer([row(n, n) for n in range(10, 20)])
    figures: Any = application.end({"timeout_s": 60})["figures"]
    assert (figures["drained"], figures["failure"]) == (True, None)
    assert sum(body["rows"] for body in driver.reports.values()) == 20
    assert not (tmp_path / "check").exists()
    assert application.end({"timeout_s": 60}) == {"figures": {}}, "a second end has nothing to end"


@pytest.mark.parametrize("resumed", [False, True])
def test_a_query_that_does_not_begin_leaves_nothing_but_the_checkpoint_that_it_found(
    spark: Any, driver: HandDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumed: bool
) -> None:
    (tmp_path / "check").mkdir()
    application = Application(spark, "filesystem")
    monkeypatch.setattr(application, "_wait_until_waiting", None)
    monkeypatch.setattr("streamgauge.bench.engines.spark.application.of_each", None)
    with pytest.raises(TypeError):  # either is called
        application.begin(command(driver, tmp_path, resumed=resumed))
    assert (tmp_path / "check").exists() is resumed
    for query in spark.streams.active:
        query.stop()


def test_a_driver_that_is_gone_leaves_a_real_time_query_undrained(
    spark: Any, driver: HandDriver, tmp_path: Path
) -> None:
    """The count of rows that it offered is not known any more, so none can be said to be processed."""
    application = begun(spark, driver, tmp_path)
    application._real_time = True
    driver.close()
    figures: Any = application.end({"timeout_s": 60})["figures"]
    assert figures["drained"] is False


@pytest.mark.parametrize(
    ("own", "setting", "kept"), [(OWN, "filesystem", OWN), (None, "default", None), (OWN, "default", OWN)]
)
def test_the_checkpoint_manager_of_a_users_conf_is_kept(
    spark: Any, own: str | None, setting: str, kept: str | None
) -> None:
    spark.conf.unset(MANAGER) if own is None else spark.conf.set(MANAGER, own)
    Application(spark, setting)
    assert spark.conf.get(MANAGER, None) == kept


def test_a_manager_is_set_where_the_user_names_none(spark: Any) -> None:
    spark.conf.unset(MANAGER)
    Application(spark, "filesystem")
    assert str(spark.conf.get(MANAGER)).endswith("FileSystemBasedCheckpointFileManager")
