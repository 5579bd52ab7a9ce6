"""The experiments that `init` writes: the stream as it came, and targets that the file's own disorder allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from streamgauge.base.errors import Infeasible
from streamgauge.base.units import Duration
from streamgauge.config import DelaySpec, Experiment, Source
from streamgauge.records.profile import Hint, Span
from streamgauge.streams.disorder.row_groups import RowGroup
from streamgauge.streams.stages import reach
from streamgauge.streams.stages.reach import Disorder
from streamgauge.streams.text.sample import Sample

#: targets in percent, of which the first that lies so far above the file's own disorder is taken
_TARGETS, _ABOVE = (20, 50), 5
#: how much longer delays may have to be than those that reach over some hundred events
_LONGER = (1, 10, 100)
_AS_IT_CAME = "{name: as_it_came, target: source} # no delay is added"


@dataclass(frozen=True)
class FirstStreams:
    """Experiments for a source, and what was measured of it in its files' order."""

    disorder: Disorder
    sorted: bool  # the source is to be sorted by event time, as its own disorder leaves no room
    experiments: dict[str, str]  # by name, a line of a benchmark file
    hints: tuple[Hint, ...] | None = None  # hints of all events, if they were read
    span: Span | None = None  # event times of all events, if they were read


def first_streams(source: Source, looked: Sample, longest: Duration, *, small: bool | None = None) -> FirstStreams:
    """Chooses experiments that can be met. Raises UserError if the whole of a small source cannot be read.

    small: whether the source is to be read whole; by default its size decides.
    """
    if not (reach.is_small(source) if small is None else small):
        own = reach.of_sample(looked, source)
        # the rest of the source may have more
        return _chosen(own, [(target, longest) for target in _targets(own)], "on_infeasible: closest, ")
    with reach.whole(source) as (groups, hints):
        own = reach.disorder(groups, source.tick)
        span = Span(min=min(one.time_min for one in groups), max=max(one.time_max for one in groups))
        reachable = _reachable(groups, _targets(own), longest, source)
    if reachable or own.percent <= _TARGETS[-1] - _ABOVE:
        return replace(_chosen(own, reachable), hints=hints, span=span)
    with reach.whole(source.model_copy(update={"order": "event_time"})) as (groups, _):
        reachable = _reachable(groups, _TARGETS[:1], longest, source)
    return replace(_chosen(own, reachable, ordered=True), hints=hints, span=span)


def _targets(own: Disorder) -> list[int]:
    return [target for target in _TARGETS if own.percent + _ABOVE <= target]


def _reachable(
    groups: Sequence[RowGroup], targets: Sequence[int], longest: Duration, source: Source
) -> list[tuple[int, Duration]]:
    """Targets that can be met, each with the shortest delay that meets it."""
    streams = []
    for target in targets:
        for delay in (Duration(longest.ps * factor) for factor in _LONGER):
            wanted = Experiment(name="late", target_percent=target, delay=DelaySpec(max=delay), seed=1)
            try:
                reach.solution(groups, wanted, source.tick)
            except Infeasible:
                continue
            streams.append((target, delay))
            break
    return streams


def _chosen(
    own: Disorder, reachable: Sequence[tuple[int, Duration]], more: str = "", *, ordered: bool = False
) -> FirstStreams:
    lines = {"ordered": "{name: ordered, target_percent: 0}"} if ordered else {"as_it_came": _AS_IT_CAME}
    for target, delay in reachable[:1]:
        lines[f"late{target}"] = (
            f"{{name: late{target}, target_percent: {target}, delay: {{max: {delay}}}, {more}seed: 1}} "
            f"# some are delayed, by up to {delay}, until {target} % are out of order"
        )
    return FirstStreams(own, ordered, lines)
