"""Columns of known types against the text that they would have: the same events, whatever their types and values."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import config
from streamgauge.config import Source
from streamgauge.streams.text.parse import Parsed, parse
from streamgauge.streams.text.splits import source_splits

WHOLE = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-(10**15), 10**15)
TEXTS = st.one_of(st.sampled_from(["", "a", "b c", " a", "b\t", 'x"y', "x'y", "p,q", "l\nm", "ä"]), st.text(max_size=5))
DAYS = st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1))
#: type of a time column -> its values, and how the source describes it
TIMES: dict[str, tuple[Any, st.SearchStrategy[Any], dict[str, Any]]] = {
    "seconds": (pa.int64(), NEAR, {"unit": "s"}),
    "nanoseconds": (pa.int64(), WHOLE, {"unit": "ns"}),
    "picoseconds": (pa.int64(), WHOLE, {"unit": "ps"}),
    "small": (pa.int16(), st.integers(-(2**15), 2**15 - 1), {"unit": "ms"}),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1), {"unit": "us"}),
    "stamps": (pa.timestamp("us"), NEAR, {}),
    "stamps elsewhere": (pa.timestamp("ms", "Asia/Tokyo"), st.integers(-(10**12), 9 * 10**12), {}),
    "stamps of a zone": (pa.timestamp("s"), st.integers(0, 2 * 10**9), {"zone": "Europe/Berlin"}),
    "days": (pa.date32(), DAYS, {}),
    "floats": (pa.float64(), st.floats(-1e6, 1e6), {"unit": "s"}),
    "texts": (pa.string(), st.sampled_from(["2026-05-01T10:00:00", "x", ""]), {}),
}
COLUMNS: dict[str, tuple[Any, st.SearchStrategy[Any], str]] = {
    "texts": (pa.string(), TEXTS, "string"),
    "numbers as texts": (pa.int32(), st.integers(-9, 9), "string"),
    "numbers": (pa.int64(), WHOLE, "int64"),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1), "int64"),
    "flags": (pa.bool_(), st.booleans(), "int64"),
    "floats": (pa.float64(), st.floats(), "float64"),
    "short floats": (pa.float32(), st.floats(width=32), "float64"),
    "wholes as floats": (pa.int64(), WHOLE, "float64"),
}


def table(data: st.DataObject, kind: Any, values: st.SearchStrategy[Any], count: int, *, nulls: bool) -> pa.Array:
    drawn = data.draw(st.lists(st.none() | values if nulls else values, min_size=count, max_size=count))
    return pa.array(drawn, kind)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("typed")


@given(data=st.data())
def test_events_are_those_of_the_text(folder: Path, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    kind, values, description = TIMES[data.draw(st.sampled_from(sorted(TIMES)))]
    name = data.draw(st.sampled_from(sorted(COLUMNS)))
    own, drawn, wanted = COLUMNS[name]
    nulls = data.draw(st.booleans())
    rows = {"at": table(data, kind, values, count, nulls=nulls), "c": table(data, own, drawn, count, nulls=nulls)}
    with_arrival = data.draw(st.booleans())
    if with_arrival:
        rows["got"] = table(data, pa.timestamp("ms"), st.integers(0, 10**12), count, nulls=nulls)
    file = folder / "rows.parquet"
    pq.write_table(pa.table(rows), file)
    raw = {
        "files": [str(file)], "format": "parquet", "quote": data.draw(st.sampled_from("\"'")),
        "time": {"column": "at", **description}, "columns": {"c": wanted},
        **({"arrival": {"column": "got"}} if with_arrival else {}),
    }  # fmt: skip
    (split,) = source_splits(config.parse(Source, raw, "source"), 1 << 20)
    (piece,) = split.pieces(1 << 20)
    by_text = parse(piece.lines, split.layout, 7)
    assert shown(parse(piece.lines, split.layout, 7, None, piece.known)) == shown(by_text)
    plain = not nulls and name in ("numbers", "floats") and "zone" not in description and pa.types.is_timestamp(kind)
    assert piece.known is not None or not plain, "such rows need no text"


def shown(parsed: Parsed) -> str:
    """Events and bad lines; as text, since NaN is no value that equals itself."""
    return f"{parsed.events.schema}{parsed.events.to_pydict()}{parsed.bad and parsed.bad.to_pydict()}"
