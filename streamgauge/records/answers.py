"""The records of suites: answers to queries (`nexmark.jsonl`), what systems can do, and runs of the hard queries."""

from __future__ import annotations

from typing import Any, Literal

from streamgauge.records.record import Line, Part, Record

Mode = Literal["batch", "streaming"]
MODES: tuple[Mode, ...] = ("batch", "streaming")
#: unchecked: the query was answered, and nobody can say if the answer is right; without rows, it was too slow.
#: not run: no stage has asked it yet; this is shown, and never written
Status = Literal["correct", "unchecked", "unsupported", "wrong", "not run"]
Ability = Literal["works", "unchecked", "not run", "unsupported", "wrong"]


class Answer(Part):
    """Outcome of a query in a mode. rows, hash: of what its rule compares. why: the reason, unless it is correct."""

    query: str
    mode: Mode
    status: Status
    rows: int | None = None
    hash: str | None = None
    seconds: float | None = None
    late_drops_expected: int | None = None
    late_drops_reported: int | None = None
    late_drops_counted_in: str = "none"
    events_per_s: float | None = None
    output_bytes: int | None = None
    state_rows: int | None = None
    why: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of every answer, for a record that has more of them."""
        return {name: value for name, value in self if name in Answer.model_fields}


class AnswerLine(Line, Answer):
    """A line of nexmark.jsonl: an answer of a system on a stream with so much disorder."""

    system: str
    disorder_percent: float
    events: int | None = None
    seed: int | None = None  # of a stream that was made for the command


class ForeignAnswer(Line, Answer):
    """An answer that a process with a Spark or a Python of its own hands over."""

    versions: dict[str, str]


class QueryAbility(Part):
    """Rating of how well a system answers a query in a mode, and why not better."""

    query: str
    system: str
    mode: Mode
    status: Ability
    why: str | None


class FeatureAbility(Part):
    """Rating of how well a system does in a mode what some queries need: as well as the worst of them."""

    feature: str
    system: str
    mode: Mode
    status: Ability
    why: str | None


class Capabilities(Record):
    """Content of capabilities.json, which follows from the lines of nexmark.jsonl."""

    queries: tuple[QueryAbility, ...]
    features: tuple[FeatureAbility, ...]


class OperatorState(Part):
    """A stateful operator after a micro-batch that dropped rows behind late_ms and evicted state behind eviction_ms."""

    name: str
    rows: int
    bytes: int
    dropped: int
    late_ms: int | None
    eviction_ms: int | None


class HardBatch(Part):
    """A micro-batch of a hard query; output: its rows, with all values as text."""

    batch: int
    input_rows: int
    output_rows: int
    output: tuple[dict[str, str], ...] = ()
    watermark_ms: int
    operators: tuple[OperatorState, ...]


class HardAnswer(Answer):
    """An answer to a hard query, with its micro-batches where it was asked in streaming."""

    batches: tuple[HardBatch, ...] = ()


class Example(Part):
    """A case of the worked example. given: (value, second) of each event, by micro-batch."""

    name: str
    given: tuple[tuple[tuple[int, int], ...], ...]
    batches: tuple[HardBatch, ...]


class HardQueries(Line):
    """Content of hard-SYSTEM-PERCENT.json: the hard queries on a stream that was made for them."""

    system: str
    disorder_percent: float
    events: int
    disorder: float  # the share of events that come late
    longest_delay_s: int
    queries: tuple[HardAnswer, ...]
    example: tuple[Example, ...] = ()
