"""The queries with which a system can be measured: for each a row of the registry, and the question in SQL.

How an engine answers them is in its own folder.
"""

from __future__ import annotations

from streamgauge.bench.workloads.query import Query, Rule
from streamgauge.bench.workloads.registry import REGISTRY, WORKLOADS, find, registry
from streamgauge.bench.workloads.spec import Spec

__all__ = ["REGISTRY", "WORKLOADS", "Query", "Rule", "Spec", "find", "registry"]
