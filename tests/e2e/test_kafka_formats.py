"""Jobs whose records have schemas in a registry, on a real broker with a real registry."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from streamgauge.app.services.broker import Broker
from streamgauge.app.services.local_registry import LocalRegistry
from streamgauge.base.errors import UserError
from streamgauge.bench.engines.job import life
from tests.driver.conftest import artifact
from tests.e2e.test_kafka import settings, started, trial
from tests.told import compared

__all__ = ["artifact"]  # a fixture here, too
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

JOB = Path(__file__).with_name("registry_job.py")
SQL = "select event_ts as at, flight, event_wall, offered_wall from events"
FIELDS = [
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "flight", "type": ["null", "long"]},
]
PLAIN = json.dumps({"type": "record", "name": "Answer", "fields": FIELDS})


@pytest.fixture(autouse=True)
def _any_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(life, "MOST_STARVED", 1.0)


def about(registry: LocalRegistry, form: str, given: str, **answer: str) -> dict[str, Any]:
    command = [sys.executable, str(JOB), "{bootstrap}", "{input}", "{output}", "{group}", registry.address, form]
    return {
        "command": command,
        "format": given,
        "registry": {"address": registry.address},
        "answer": {"sql": SQL, "key": ["at", "flight"], "quiet": "200ms", "format": form, **answer},
    }


def subjects(registry: LocalRegistry) -> list[str]:
    with urllib.request.urlopen(f"{registry.address}/subjects") as answer:
        return [name for name in json.load(answer) if name.startswith("streamgauge-")]


@pytest.mark.parametrize(
    ("given", "form", "more"),
    [("confluent-avro", "confluent-avro", {}), ("confluent-json", "avro", {"writer_schema": PLAIN})],
)
def test_records_with_schemas_of_a_registry_go_both_ways_and_the_schemas_are_removed(
    broker: Broker, registry: LocalRegistry, artifact: Path, tmp_path: Path, given: str, form: str, more: dict[str, str]
) -> None:
    mine = settings(broker, **about(registry, form, given, **more))
    with started(mine, artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "trial", seconds=0.5)
    assert (run.observation.invalid, compared(run.details)["wrong"]) == (None, None)
    assert run.details["emitted"] == 300
    assert subjects(registry) == []


def test_answers_that_are_in_another_format_make_a_trial_invalid(
    broker: Broker, registry: LocalRegistry, artifact: Path, tmp_path: Path
) -> None:
    mine = settings(broker, **about(registry, "avro", "confluent-avro", format="confluent-avro"))
    with started(mine, artifact, tmp_path) as (system, fleet):
        run = trial(system, fleet, tmp_path / "trial", seconds=0.5)
    refused = "answer.format: an answer cannot be read as confluent-avro: no prefix of a schema registry"
    assert str(run.details["system"]["failure"]).startswith(refused)


def test_a_registry_that_is_away_is_told_before_anything_is_measured(
    broker: Broker, registry: LocalRegistry, artifact: Path, tmp_path: Path
) -> None:
    given = about(registry, "confluent-avro", "confluent-avro") | {"registry": {"address": "http://127.0.0.1:1"}}
    refused = r"^systems\.mine\.registry\.address: http://127\.0\.0\.1:1 does not answer"
    with pytest.raises(UserError, match=refused), started(settings(broker, **given), artifact, tmp_path):
        pass
