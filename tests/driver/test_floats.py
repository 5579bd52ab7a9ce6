"""Equal floats are offered as the same bits, whatever they were."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streamgauge.bench.driver.floats import plain_floats


def bits(value: float) -> int:
    return int.from_bytes(struct.pack("<d", value), "little")


@given(st.lists(st.none() | st.floats(), min_size=1))
def test_equal_numbers_have_equal_bits_and_others_stay(values: list[float | None]) -> None:
    rows = pa.table({"n": range(len(values)), "x": pa.array(values, pa.float64())})
    found = plain_floats(rows)
    assert found["n"] == rows["n"]
    for before, after in zip(values, found["x"].to_pylist(), strict=True):
        if before is None or math.isnan(before):
            assert after is None if before is None else bits(after) == bits(math.nan)
        else:
            assert bits(after) == bits(before if before else 0.0)


def test_every_nan_is_one() -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001], np.uint64).view(np.float64)
    found = plain_floats(pa.table({"x": odd}))["x"].to_pylist()
    assert {bits(value) for value in found} == {bits(math.nan)}
