"""Runs in Apache Otava's own environment: series as JSON on standard input, its change points on standard output."""

from __future__ import annotations

import json
import sys

from otava.analysis import compute_change_points  # type: ignore[import-not-found]

settings = json.loads(sys.argv[1])
# [[values, first, last], …]: looks at values[:n] for n from first to last
looks = [
    [[int(c.index) for c in compute_change_points(values[:n], **settings)[0]] for n in range(first, last + 1)]
    for values, first, last in json.load(sys.stdin)
]
json.dump(looks, sys.stdout)
