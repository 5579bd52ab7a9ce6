"""The words of a page: each is explained where it stands, and once more in a list at the page's end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markupsafe import Markup, escape

from streamgauge.results.report.blocks import Cell, Chart, Section, Table, Text, Tiles

#: term -> what it means; docs/definitions.md has the same in more words
TERMS = {
    "out of order": "An event is out of order if an event with a later time came before it.",
    "watermark": "A watermark says that no earlier event is awaited any more. It follows the latest event time at a "
    "fixed delay; an event below it may be dropped as late.",
    "cell": "What is measured: one stream, one query and one system.",
    "sustainable rate": "The highest rate at which a system that has fallen behind still catches up.",
    "limited by": "What keeps the rate from being higher, such as the largest batch that the engine takes.",
    "allowed age": "How long the oldest waiting event may have waited: search.max_age in the benchmark file.",
    "age": "The time that the oldest event has waited that the system has not yet taken.",
    "backlog": "The events that wait to be taken.",
    "batch cap": "The largest number of events that the engine takes in one micro-batch (the system's batch_rows).",
    "90 % interval": "Nine of ten such intervals hold the true value.",
    "p99": "99 of 100 values are at or below it.",
    "event-time latency": "From the event's own time until the answer that it contributed to is emitted.",
    "proof trial": "A system begins with a backlog; at a rate that it sustains it catches up, above it does not.",
    "verdict": "What a trial shows of its rate: sustainable, unsustainable, or inconclusive, which is never a pass.",
    "inconclusive": "Nobody can tell from what was measured; it is never a pass.",
    "void": "The output was wrong, so the figure does not count.",
    "newly delayed": "Events that the generator delayed, beside those that were out of order in the source.",
    "adjacent descents": "Events that are earlier than the event just before them.",
    "dispersion": "How bursty the events come: 1 for independent events, more for bursts.",
    "yardstick": "A fixed piece of work that is timed beside each measurement, and tells how fast the machine was.",
    "watermark hold": "How long a row waits in the engine's state for the watermark to close its window.",
    "noise floor": "95 % of comparisons of a system with itself stay below it.",
    "detectable": "The smallest change that four of five comparisons would find.",
    "driver's ceiling": "The rate that the driver itself delivers without a system; a search goes up to 70 % of it.",
    "CPU-µs per event": "Processor time for an event, in millionths of a second; it varies less than wall time.",
    "state rows": "What an engine keeps between events to answer later, such as open windows.",
}
#: longer terms first; a space may be a hyphen, and the last word a plural
_ALL = "|".join(re.escape(term).replace(r"\ ", r"[\s-]+") for term in sorted(TERMS, key=len, reverse=True))
_ANY = re.compile(rf"(?<!\w)(?:{_ALL})s?(?!\w)", re.IGNORECASE)


def linked(text: object) -> Markup:
    """Returns the text as HTML, in which the first term has its meaning as a hint and a link to the list."""
    plain = str(text)
    match = _ANY.search(plain.replace("\u202f", " ").replace("\u00a0", " "))
    if match is None:
        return escape(plain)
    begin, end = match.span()
    term = _term(match[0])
    return Markup('{}<a class="term" href="#word-{}" title="{}">{}</a>{}').format(
        plain[:begin], slug(term), TERMS[term], plain[begin:end], plain[end:]
    )


def slug(term: str) -> str:
    return re.sub(r"\W+", "-", term.lower())


def section(sections: list[Section]) -> Section | None:
    """The list of the terms that leads, columns and tiles use, the first of each text; None without any."""
    used = {_term(match[0]) for text in _labels(sections) if (match := _ANY.search(text))}
    rows: list[list[Cell]] = [[Text(term, id=f"word-{slug(term)}"), TERMS[term]] for term in TERMS if term in used]
    table = Table(["word", "meaning"], rows)
    return Section("words", "Words", "All words that this page explains.", [table]) if rows else None


def _labels(sections: list[Section]) -> Iterator[str]:
    for one in sections:
        yield one.lead
        for block in one.blocks:
            if isinstance(block, Table | Chart):
                yield from (block if isinstance(block, Table) else block.table).columns
            if isinstance(block, Tiles):
                yield from (label for label, _, _ in block.tiles)
        yield from _labels(one.parts)


@cache
def _term(text: str) -> str:
    """The entry that a text such as "Watermarks" stands for."""
    words = re.sub(r"[\s\u202f\u00a0-]+", " ", text).lower()
    by_lower = {term.lower().replace("-", " "): term for term in TERMS}
    return by_lower.get(words) or by_lower[words.removesuffix("s")]
