"""Answers of all queries on Flink are DuckDB's, by Flink's own rule of lateness: in order, and with late events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streamgauge.base.schemas import NEXMARK
from streamgauge.bench.answers.finite_stream import make_events, wanted_stream
from streamgauge.bench.answers.hard_queries import SPECS, offered
from streamgauge.bench.answers.hard_queries import events as seconds_apart
from streamgauge.bench.answers.wire_suite import asked, served, suite
from streamgauge.bench.driver.fleet import Fleet
from streamgauge.bench.engines.flink import flink_system
from streamgauge.bench.engines.flink.queries import QUERIES, REFUSED
from streamgauge.bench.workloads import Spec, find, registry
from streamgauge.catalog.artifacts import Store
from tests.e2e.flink import Proxied

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("flink_is_made"),
]
SECOND_US = 1_000_000
AUCTIONS, WINDOWED = 3_000, 600
COLUMNS = {"name": "string", "amount": "int64"}
HARD = {spec.query: replace(spec, offset_us=0) for spec in SPECS}
SPECS_OF = {
    **{spec.query: spec for spec in suite(find(name) for name in QUERIES if name.startswith("nexmark."))},
    **HARD,
    "passthrough": Spec("passthrough", "name", "amount"),
    "windowed_aggregation": Spec(
        "windowed_aggregation", "name", "amount", 12 * SECOND_US, slide_us=4 * SECOND_US, watermark_ms=2_000
    ),
    "windowed_join": Spec("windowed_join", "name", "amount", 6 * SECOND_US, 3 * SECOND_US),
}
#: their window is a day, of which no event is late, and the only row of q15 is that of the day
DAYS = ("nexmark.q15", "nexmark.q16")
#: no operator of the others looks at a watermark: late events would be the same rows in another order
CASES = [
    (name, late) for name, spec in SPECS_OF.items() for late in (False, True) if late or find(name).late != "never"
]


def windowed(late: bool) -> pa.Table:
    """An event a second, two in a hundred of nobody, some without an amount."""
    table = seconds_apart(WINDOWED, 0.2 if late else 0.0, 40)
    draw = np.random.default_rng(7)
    for name, share in (("name", 0.02), ("amount", 0.05)):
        place = table.schema.get_field_index(name)
        gone = pa.array(draw.random(WINDOWED) < share)
        emptied = pc.if_else(gone, pa.scalar(None, table.schema.field(name).type), table[name])
        table = table.set_column(place, pa.field(name, table.schema.field(name).type), emptied)
    return offered(table)


@pytest.fixture(scope="module")
def streams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[bool, bool], tuple[pa.Table, Fleet]]]:
    """Rows, and a driver that offers them, by (is Nexmark, is late)."""
    work = tmp_path_factory.mktemp("streams")
    found, fleets = {}, []
    try:
        for late in (False, True):
            events = make_events(Store(work / f"store-{late}"), wanted_stream(AUCTIONS, 1, 20.0 if late else 0.0))
            for nexmark, rows, columns in ((True, events.rows, NEXMARK), (False, windowed(late), COLUMNS)):
                fleet = served(rows, columns, work / f"{late}-{nexmark}")
                found[nexmark, late] = rows, fleet.__enter__()
                fleets.append(fleet)
        yield found
    finally:
        for fleet in fleets:
            fleet.__exit__(None, None, None)


def test_every_query_of_the_registry_is_answered_or_refused_with_a_reason() -> None:
    assert {query.name for query in registry()} == {*QUERIES, *REFUSED}


@pytest.mark.parametrize(
    ("name", "late"),
    [
        pytest.param(name, late, id=f"{name}-late") if late
        else pytest.param(name, late, id=f"{name}-ordered", marks=pytest.mark.prove)
        for name, late in CASES
    ],
)  # fmt: skip
def test_the_answer_is_duckdb_s(
    one_flink: Proxied,
    streams: dict[tuple[bool, bool], tuple[pa.Table, Fleet]],
    tmp_path: Path,
    name: str,
    late: bool,
) -> None:
    nexmark = name.startswith("nexmark.")
    rows, fleet = streams[nexmark, late]
    columns = {column: NEXMARK[column] for column in find(name).columns} if nexmark else COLUMNS
    loses = late and find(name).late != "never" and name not in DAYS
    record = asked(one_flink, fleet, SPECS_OF[name], columns, rows, tmp_path / "1")
    if loses and not record.late_drops_reported:  # on a busy machine it may take all rows before its first watermark
        record = asked(one_flink, fleet, SPECS_OF[name], columns, rows, tmp_path / "2")
    assert (record.status, record.why) == ("correct", None)
    assert record.late_drops_reported == record.late_drops_expected
    assert bool(record.late_drops_reported) is loses
    assert record.rows is not None
    assert record.rows > (0 if late or name in DAYS else 3)


def test_floats_whose_millionths_have_53_bits_are_rounded_as_duckdb_rounds(one_flink: Proxied, tmp_path: Path) -> None:
    """Half a millionth added to such a float is no float any more."""
    plain = windowed(late=False)
    odd = [(2**52 + 2 * nth + 1) / 1e6 * (1 if nth % 3 else -1) for nth in range(plain.num_rows)]
    assert sum(value * 1e6 % 2 == 1 for value in odd) > plain.num_rows / 2
    column = pa.field("amount", pa.float64())
    rows = plain.set_column(plain.schema.get_field_index("amount"), column, pa.array(odd, pa.float64()))
    columns = COLUMNS | {"amount": "float64"}
    with served(rows, columns, tmp_path / "served") as fleet:
        record = asked(one_flink, fleet, SPECS_OF["windowed_aggregation"], columns, rows, tmp_path / "asked")
    assert (record.status, record.why) == ("correct", None)


@pytest.fixture(scope="module")
def before_1970(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[bool, tuple[pa.Table, Fleet]]]:
    """Rows of 1960 that pass a midnight, a fifth of them late, and a driver that offers them, by (is Nexmark)."""
    work = tmp_path_factory.mktemp("before")
    asked_for = wanted_stream(AUCTIONS, 1, 20.0)
    settings = asked_for.source.nexmark
    assert settings is not None
    begun = settings.model_copy(update={"base_time": datetime(1960, 1, 1, 23, 59, 20, tzinfo=UTC)})
    source = asked_for.source.model_copy(update={"nexmark": begun})
    events = make_events(Store(work / "store"), replace(asked_for, source=source)).rows
    earlier = -10 * 365 * 86_400 * SECOND_US
    other = windowed(late=True)
    for name, by in (("event_time", earlier * 1000), ("event_ts", earlier)):
        place = other.schema.get_field_index(name)
        moved = pc.add(other[name].cast(pa.int64()), by).cast(other.schema.field(place).type)
        other = other.set_column(place, other.schema.field(place), moved)
    with served(events, NEXMARK, work / "nexmark") as auctions, served(other, COLUMNS, work / "other") as fleet:
        yield {True: (events, auctions), False: (other, fleet)}


@pytest.mark.parametrize(
    "name", ["nexmark.q14", "nexmark.q15", "nexmark.q20", "chained_windows", "sessions", "outer_join"]
)
def test_before_1970_the_answer_is_duckdb_s_or_refused(
    one_flink: Proxied, before_1970: dict[bool, tuple[pa.Table, Fleet]], tmp_path: Path, name: str
) -> None:
    nexmark = name.startswith("nexmark.")
    rows, fleet = before_1970[nexmark]
    columns = {column: NEXMARK[column] for column in find(name).columns} if nexmark else COLUMNS
    record = asked(one_flink, fleet, SPECS_OF[name], columns, rows, tmp_path)
    if name == "nexmark.q20":  # an interval join
        assert (record.status, str(record.why)[:34]) == ("unsupported", "flink's interval join takes a wate")
    else:
        assert (record.status, record.why, bool(record.rows)) == ("correct", None, True)


#: what the engine is told instead: a watermark a millisecond off, windows that hold their end, rows that it never sees
SLIPS: dict[str, tuple[dict[str, object], str]] = {
    "watermark": ({"watermark_ms": 2_001}, "its rows imply"),
    "closed end": ({"offset_us": 1}, "expected"),
    "lost rows": ({"reads": [{"name": ["a", "b", "c"]}]}, "expected"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_what_the_engine_does_wrongly_is_caught(
    one_flink: Proxied,
    streams: dict[tuple[bool, bool], tuple[pa.Table, Fleet]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    slip, told = SLIPS[name]
    right = flink_system.argument
    monkeypatch.setattr(flink_system, "argument", lambda *given: {**right(*given), **slip})
    rows, fleet = streams[False, True]
    record = asked(one_flink, fleet, SPECS_OF["windowed_aggregation"], COLUMNS, rows, tmp_path)
    assert record.status == "wrong"
    assert told in str(record.why)
