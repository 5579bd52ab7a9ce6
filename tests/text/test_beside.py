"""Columns beside lines, as a topic's records have them: times and columns are read from them as from the text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.config import Source
from streamgauge.streams.sources.topics import Beside
from streamgauge.streams.text.parse import layout_of, parse

COLUMNS = {
    "part": {"path": "kafka.partition", "type": "int64"},
    "key": {"path": "kafka.key", "type": "string"},
    "x": {"path": "x", "type": "string"},
    "trace": {"path": "kafka.header.trace", "type": "string"},
}


def source_of(values: str, **more: object) -> Source:
    keys = {"format": "kafka", "kafka": {"bootstrap": "h:1", "topic": "t", "values": values}, "columns": COLUMNS}
    return Source.model_validate({**keys, "time": {"column": "kafka.timestamp"}, **more})


def beside(at: list[int], *columns: list[bytes], reasons: dict[str, list[int]] | None = None) -> Beside:
    return Beside(tuple(pa.array(each, pa.binary()) for each in columns), np.array(at, np.int64), reasons or {})


@pytest.mark.parametrize(
    ("values", "more", "names", "lines"),
    [
        ("json", {}, ["x"], b'{"x":"a"}\n{"x":"b,\\"c"}\nno JSON\n\n{"x":null}\n'),
        ("line", {"column_names": ["w", "x"]}, ["w", "x"], b'1,a\n2,"b,""c"\n3\n\n5,\n'),
    ],
)
def test_a_row_has_what_is_in_the_text_and_what_stands_beside_it(
    values: str, more: dict[str, object], names: list[str], lines: bytes
) -> None:
    layout = layout_of(source_of(values, **more), names, "t")
    assert layout.beside == ("kafka.timestamp", "kafka.partition", "kafka.key", "kafka.header.trace")
    columns = [b"1000", b"-1", b"7", b"8", b"9"], [b"3"] * 5, [b"k", b'k"', b"", b"", b""], [b"", b"t", b"", b"", b"u"]
    parsed = parse(lines, layout, 100, beside([0, 2, 3, 7, 9], *columns, reasons={"tombstone": [3]}))
    assert parsed.events.drop_columns(["line"]).to_pylist() == [
        {"seq": 100, "event_time": 10**9, "part": 3, "key": "k", "x": "a", "trace": None},
        {"seq": 102, "event_time": -(10**6), "part": 3, "key": 'k"', "x": 'b,"c', "trace": "t"},
        {"seq": 109, "event_time": 9 * 10**6, "part": 3, "key": None, "x": None, "trace": "u"},
    ]
    assert parsed.bad is not None
    reason = "not a JSON object" if values == "json" else "fewer than 2 fields"
    assert [(row["at"], row["reason"]) for row in parsed.bad.to_pylist()] == [(3, reason), (7, "tombstone")]


@given(st.lists(st.tuples(st.integers(0, 2**62 // 10**6), st.integers(1, 9), st.booleans()), min_size=1, max_size=30))
def test_seqs_are_places_among_the_offsets_whatever_is_missing(records: list[tuple[int, int, bool]]) -> None:
    layout = layout_of(source_of("json", columns={}), [], "t")
    at = np.cumsum([step for _, step, _ in records]).tolist()
    times = [str(time).encode() if known else b"" for time, _, known in records]
    parsed = parse(b"{}\n" * len(records), layout, 5, beside(at, times))
    rows = zip(at, records, strict=True)
    wanted = [(place + 5, time * 10**6) for place, (time, _, known) in rows if known]
    assert list(zip(*(parsed.events[name].to_pylist() for name in ("seq", "event_time")), strict=True)) == wanted
