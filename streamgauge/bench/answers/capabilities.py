"""Derives what a system can do from the answers of suites that ran, never from a list kept by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from streamgauge.bench import workloads
from streamgauge.bench.workloads.nexmark.queries import QUERIES
from streamgauge.records.answers import Ability, AnswerLine, Capabilities, FeatureAbility, Mode, QueryAbility

Some = TypeVar("Some", QueryAbility, FeatureAbility)
HARD = (
    "custom_windows", "chained_windows", "sessions", "deduplication", "outer_join", "top_n", "incremental_join",
)  # fmt: skip
#: the suite's queries, named as in the answers
SUITE = tuple(query.name.removeprefix("nexmark.") for query in QUERIES)
#: from best to worst: a feature is as good as the worst of its queries
STATES: tuple[Ability, ...] = ("works", "unchecked", "not run", "unsupported", "wrong")


def capabilities(answers: Iterable[AnswerLine]) -> Capabilities:
    """Lists the status and its reason for every query, and for every feature, per system and mode.

    The last answer to each query (one of SUITE or HARD) counts, by system, mode and disorder.
    """
    queries: dict[tuple[str, str, Mode], QueryAbility] = {}
    features: dict[tuple[str, str, Mode], FeatureAbility] = {}
    latest = {(line.query, line.system, line.mode, line.disorder_percent): line for line in answers}
    for line in latest.values():
        name = line.query if line.query in HARD else f"nexmark.{line.query}"
        status, why = _status(line), line.why
        _keep_worst(
            queries,
            (name, line.system, line.mode),
            QueryAbility(query=name, system=line.system, mode=line.mode, status=status, why=why),
        )
        why = None if status == "works" else f"{name}: {why}"
        for feature in workloads.find(name).features:
            _keep_worst(
                features,
                (feature, line.system, line.mode),
                FeatureAbility(feature=feature, system=line.system, mode=line.mode, status=status, why=why),
            )
    return Capabilities(queries=tuple(queries.values()), features=tuple(features.values()))


def _status(line: AnswerLine) -> Ability:
    if line.status == "correct":
        return "works"
    too_slow = line.status == "unchecked" and line.rows is None and "rows" in line.model_fields_set
    return "not run" if too_slow else line.status


def _keep_worst(known: dict[tuple[str, str, Mode], Some], key: tuple[str, str, Mode], ability: Some) -> None:
    before = known.get(key)
    if before is None or STATES.index(ability.status) > STATES.index(before.status):
        known[key] = ability
