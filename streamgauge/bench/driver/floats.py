"""Makes equal floats the same bits, once for all engines, where the driver reads a stream."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Rows, replaced


def plain_floats(rows: Rows) -> Rows:
    """The rows with 0.0 for −0.0, and one NaN for all: engines differ in whether those are one key."""
    plain = {}
    for field in rows.schema:
        if pa.types.is_float64(field.type):
            values = rows.column(field.name)
            plain[field.name] = pc.if_else(pc.is_nan(values), pa.scalar(math.nan), pc.add(values, 0.0))
    return replaced(rows, plain)
