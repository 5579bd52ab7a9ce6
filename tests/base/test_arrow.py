"""Arrow's arrays and numpy's hold the same values, also in slices, and nothing of it imports pandas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from streamgauge.base.arrow import bools, flags, int64s, ints

VALUES = np.array([2**63 - 1, -(2**63), 0, -1, *range(20)])


@pytest.mark.parametrize(("first", "count"), [(0, 24), (0, 0), (3, 9), (24, 0)])
def test_values_come_back_as_they_were(first: int, count: int) -> None:
    whole, part = int64s(VALUES), slice(first, first + count)
    assert whole.to_pylist() == VALUES.tolist()
    assert ints(whole.slice(first, count)).tolist() == VALUES[part].tolist()
    mask = VALUES % 3 == 0
    assert bools(mask).to_pylist() == mask.tolist()
    assert flags(bools(mask).slice(first, count)).tolist() == mask[part].tolist()


def test_of_no_rows_there_are_no_values() -> None:
    assert ints(int64s(VALUES[:0])).tolist() == flags(bools(VALUES[:0] == 0)).tolist() == []


def test_what_has_no_value_is_null() -> None:
    assert int64s(VALUES[:3], np.array([True, False, True])).to_pylist() == [2**63 - 1, None, 0]


BATCH = """
import sys
import pyarrow as pa
from streamgauge.base.arrow import int64s
from streamgauge.bench.driver.offer import Driver
from streamgauge.bench.driver.replay import make_stream
from streamgauge.bench.driver.serving import Serving
import numpy as np

times = int64s(np.arange(10))
stream = make_stream(pa.Table.from_arrays([times] * 3, names=["ingestion_time", "seq", "event_time"]), "ns", {})
Driver(stream, Serving(partitions=2))._replays[0].sentinel(1, 0)
"""


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        (BATCH, {"pandas"}),
        ("import sys, streamgauge.bench.engines.known.process", {"pandas", "pydantic", "pyarrow.compute"}),
    ],
    ids=["a driver's batches", "the known system"],
)
def test_processes_that_start_often_import_little(code: str, heavy: set[str]) -> None:
    script = f"{code}\nprint(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
