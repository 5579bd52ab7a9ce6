"""Spark's answers to the queries of the Nexmark suite, in a file for each sort of query."""

from __future__ import annotations

_FILES = {
    "projections": "q0 q1 q2 q10 q13 q14 q21 q22",
    "windows": "q5 q7 q8 q11 q12 q15 q16",
    "joins": "q3 q20 q23",
    "stateful": "q4 q6 q9 q17 q18 q19",
}
#: package.module:function by the name of the query
PLACES = {f"nexmark.{name}": f"{__name__}.{file}:{name}" for file, names in _FILES.items() for name in names.split()}
