"""Settings of the engine job: which columns are ids unless the file names them, and which brokers are asked."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import ValidationError

from streamgauge.base.errors import UserError
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.measure.checks import check
from tests.measure.benches import write_bench

COLUMNS = {"order_id": "string", "customer": "int64", "price": "float64"}
WALLS = "max(event_wall) as event_wall, max(offered_wall) as offered_wall from events group by all"


@pytest.mark.parametrize(
    ("select", "key", "ids"),
    [
        ("select order_id, price", ["order_id"], ("order_id",)),
        ("select order_id, customer", ["order_id", "customer"], ("order_id", "customer")),
        ("select customer, price", ["customer", "price"], ("customer",)),  # a price is no id
        ("select order_id as id", ["id"], ()),  # no column of the source
        ("select event_time, customer", ["event_time", "customer"], ()),
        ("select time_bucket(interval 1 hour, event_ts) as hour, customer", ["hour", "customer"], ()),
        ("select cast(event_ts as date) as day, customer", ["day", "customer"], ("customer",)),
        ("select nonsense", ["customer"], ("customer",)),  # the SQL's first use tells
    ],
)
def test_ids_are_the_columns_of_the_answers_key_unless_it_has_a_time(
    select: str, key: list[str], ids: tuple[str, ...]
) -> None:
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"]}
    answer = {"sql": f"{select}, {WALLS}", "key": key}
    assert JobSettings.model_validate(about | {"answer": answer}).ids(COLUMNS) == ids


def test_without_sql_the_key_alone_tells_and_lines_have_no_ids() -> None:
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"]}
    answer = {"key": ["order_id"]}
    assert JobSettings.model_validate(about | {"answer": answer}).ids(COLUMNS) == ("order_id",)
    lines = {"format": "line", "sentinel": "{ms},,"}
    assert JobSettings.model_validate(about | lines | {"answer": answer}).ids(COLUMNS) == ()


def test_only_the_broker_of_the_measured_system_is_asked(tmp_path: Path) -> None:
    bench = write_bench(tmp_path).benchmark
    about = {"name": "away", "engine": "job", "bootstrap": "127.0.0.1:1", "command": [sys.executable]}
    benchmark = bench.model_copy(update={"systems": (*bench.systems, JobSettings.model_validate(about))})
    check(benchmark, [bench.systems[0].name])
    with pytest.raises(UserError, match=r"^systems.away.bootstrap: the Kafka broker 127.0.0.1:1 cannot be used"):
        check(benchmark)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"key": "price"},
            "systems.mine.key: found 'price', allowed: columns of type string or int64: order_id, customer",
        ),
        ({"key": "id"}, "systems.mine.key: found 'id', allowed: columns of type"),
        ({"sentinel": {"id": 1}}, "systems.mine.sentinel: found 'id', allowed: order_id, customer, price"),
        ({"sentinel": {"customer": 1.5}}, "systems.mine.sentinel.customer: found 1.5, allowed: a value of type int64"),
        ({"key": "customer", "sentinel": {"customer": 9, "order_id": None, "price": 1}}, None),
    ],
)
def test_columns_of_records_are_those_of_the_source(more: dict[str, object], said: str | None) -> None:
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"]}
    settings = JobSettings.model_validate(about | more)
    with nullcontext() if said is None else pytest.raises(UserError, match=f"^{re.escape(said)}"):
        settings.check_columns(COLUMNS)


@pytest.mark.parametrize(
    "more",
    [{"sentinel": "{ms},,"}, {"format": "line"}, {"format": "line", "sentinel": {"customer": 1}}, {"key": 3},
     {"answer": {"grace": "1h"}}, {"answer": {"grace": "1h", "lateness": "1h", "sql": "select 1"}}],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(more: dict[str, object]) -> None:
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": ["job"]}
    with pytest.raises(ValidationError, match=r"sentinel|key|grace"):
        JobSettings.model_validate(about | more)
