"""The queries with which a system can be measured: a row of the registry and a file for each.

A query is `query(frames, spec) -> frame`, the same in batch and in streaming: no session, no clock, no writing.
Its result carries `event_wall` and `offered_wall`, the largest wall times among the contributors of each row.
"""

from __future__ import annotations

from streamgauge.workloads.query import Query, Rule
from streamgauge.workloads.registry import REGISTRY, find, registry
from streamgauge.workloads.spec import Spec, run

__all__ = ["REGISTRY", "Query", "Rule", "Spec", "find", "registry", "run"]
