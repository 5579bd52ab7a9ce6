"""The checksum of result rows knows values, nulls and the names of columns, and no order, cut or width."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.oracle.checksum import checksum

VALUES = st.fixed_dictionaries(
    {
        "i": st.none() | st.integers(-(2**63), 2**63 - 1),
        "u": st.none() | st.integers(0, 2**64 - 1),
        "f": st.none() | st.floats(allow_nan=False),
        "s": st.none() | st.text(max_size=5),
        "b": st.none() | st.binary(max_size=5),
        "d": st.none() | st.dates(date(1900, 1, 1), date(2100, 1, 1)),
        "m": st.none() | st.decimals(-(10**20), 10**20, places=2),
        "t": st.booleans(),
    }
)
TYPES = pa.schema(
    [
        ("i", pa.int64()), ("u", pa.uint64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.binary()),
        ("d", pa.date32()), ("m", pa.decimal128(38, 2)), ("t", pa.bool_()),
    ]
)  # fmt: skip


def packed(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=TYPES)


def of(values: list[Any], kind: Any, name: str = "x") -> int:
    return checksum(pa.table({name: pa.array(values, kind)}))


@given(st.lists(VALUES, min_size=1, max_size=8), st.randoms(), st.data())
def test_it_knows_values_and_not_their_order_or_cut(rows: list[Any], draw: Any, data: Any) -> None:
    shuffled = draw.sample(rows, len(rows))
    cut = draw.randrange(len(rows) + 1)
    whole = packed(shuffled)
    assert (checksum(whole[:cut]) + checksum(whole[cut:])) % 2**64 == checksum(packed(rows))
    other = data.draw(VALUES)
    if other != rows[0]:
        assert checksum(packed([other, *rows[1:]])) != checksum(packed(rows))


def test_swapped_columns_of_one_type_are_found_and_their_order_is_not() -> None:
    right = pa.table({"person_seq": [1, 2], "auction_seq": [3, 4]})
    assert checksum(right.select(["auction_seq", "person_seq"])) == checksum(right)
    assert checksum(right.rename_columns(["auction_seq", "person_seq"])) != checksum(right)
    assert checksum(right.rename_columns(["person_seq", "auction"])) != checksum(right)


def test_columns_that_measure_do_not_count() -> None:
    rows = pa.table({"x": [1]})
    assert checksum(rows.append_column("event_wall", pa.array([7]))) == checksum(rows)
    assert checksum(rows.append_column("y", pa.array([7]))) != checksum(rows)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0, None], pa.int64()), ([0.0, float("nan"), None], pa.float64()), (["", None], pa.string()),
     ([b"", None], pa.binary())],
)  # fmt: skip
def test_null_nan_and_nothing_are_three_things(values: list[Any], kind: Any) -> None:
    assert len({of([value], kind) for value in values}) == len(values)
    assert of([None, None], kind) != of([None], kind) != of([], kind)


def test_a_null_that_was_dropped_is_found() -> None:
    assert of([1, None, 2], pa.int64()) != of([1, 2], pa.int64())
    assert checksum(pa.table({"x": [1], "y": pa.array([None], pa.int64())})) != checksum(pa.table({"x": [1]}))


def test_all_nans_are_one_and_both_zeros_too() -> None:
    odd = pa.Array.from_buffers(pa.float64(), 1, [None, pa.py_buffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff")])
    assert odd[0].as_py() != odd[0].as_py()
    assert checksum(pa.table({"x": odd})) == of([float("nan")], pa.float64())
    assert of([-0.0], pa.float64()) == of([0.0], pa.float64())


ALIKE: dict[str, tuple[list[Any], list[Any]]] = {
    "texts": (["a", None, "", "long enough to leave its view"], [pa.string(), pa.large_string(), pa.string_view()]),
    "bytes": ([b"a", None, b"\x00"], [pa.binary(), pa.large_binary(), pa.binary_view()]),
    "integers": ([3, None, 0], [pa.int64(), pa.int8(), pa.int32(), pa.uint8(), pa.uint32(), pa.uint64()]),
    "floats": ([0.5, None], [pa.float64(), pa.float32()]),
}


@pytest.mark.parametrize("name", ALIKE)
def test_widths_do_not_count(name: str) -> None:
    values, kinds = ALIKE[name]
    assert len({of(values, kind) for kind in kinds}) == 1
    sliced = [pa.table({"x": pa.array([*values, *values], kind).slice(len(values))}) for kind in kinds]
    assert {checksum(table) for table in sliced} == {of(values, kinds[0])}


def test_dates_are_their_midnights_and_a_decimal_has_its_scale() -> None:
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    assert of([date(2026, 1, 2), None], pa.date32()) == of([midnight, None], pa.timestamp("us", "UTC"))
    assert of([midnight], pa.timestamp("ms", "UTC")) == of([midnight], pa.timestamp("us"))
    assert of([Decimal("1.5")], pa.decimal128(9, 1)) == of([Decimal("1.5")], pa.decimal128(20, 1))
    assert of([Decimal("1.5")], pa.decimal128(9, 1)) != of([Decimal("1.50")], pa.decimal128(9, 2))


def test_it_is_the_same_in_every_process() -> None:
    rows = pa.table({"key": ["a", None], "mean": [1.5, float("nan")], "events": [2, 3]})
    assert f"{checksum(rows):016x}" == "6b5c4b893d3a0a31"


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="found a result column of type list"):
        of([[1]], pa.list_(pa.int64()))
