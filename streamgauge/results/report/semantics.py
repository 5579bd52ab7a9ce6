"""Rules of each engine for event time, as it declares them; words and limits of the page of disorder."""

from __future__ import annotations

from streamgauge.bench.measurements.search.record import Declared
from streamgauge.config.systems import WORDS
from streamgauge.results.report.blocks import Block, Cell, Note, Section, Table
from streamgauge.results.report.formatting import between, number
from streamgauge.results.report.run_records import CellRecord, Records

UNKNOWN = "unknown"
#: the query that reads every event and answers none: what it carries is the ceiling of an engine's link
CEILING = "discard"
_WORDS = [
    ("out of order", "the event's time lies before the largest event time before it"),
    ("degree of disorder", "the part of the events that are out of order"),
    ("watermark", "what an engine takes event time to have reached: the largest event time, minus a delay"),
    ("watermark's delay", "how far the watermark stays behind, a setting of the query; the engine waits so long"),
    ("late", "the event comes when the engine no longer takes it for an answer; each engine has its own rule"),
    ("lost", "no window of the answer holds the event, so the answer lacks it"),
    ("revised", "an answer that was given before is given once more, with the late event in it"),
    ("sustainable rate", "the highest rate at which an engine that is {max_age} behind still catches up"),
    ("round", "one turn of every cell, each with fresh processes, one after the other"),
    ("90\u202f% interval", "a range that holds the true value in nine of ten such runs"),
    ("event-time latency", "the emission of a row minus the event times that made it"),
    ("p50, p99", "half of the rows are faster than p50, 99 of 100 are faster than p99"),
    ("CPU-µs an event", "microseconds of a core that the engine's processes spend on one event"),
    ("state", "what an engine keeps of windows that are still open"),
    ("link's ceiling", "what an engine reads when its query answers nothing: no figure can lie above it"),
]


def ceilings(records: Records) -> set[str]:
    """Workloads whose query answers nothing."""
    return {one.name for one in records.benchmark.workloads if one.query == CEILING}


def section(records: Records) -> Section:
    """Table of each system's rules, a column per system. They are part of the result: a faster engine may lose more."""
    lead = "Engines do not answer the same question. These rules decide which events count, when, and how often."
    facts = ("engine", "state", *WORDS.values(), "link's ceiling (events/s)")
    systems: dict[str, list[str]] = {}
    for system in records.benchmark.systems:
        cells = [cell for cell in records.cells if cell.cell.system == system.name]
        if not cells:
            continue
        declared = next((one for cell in cells if (one := declared_by(cell))), None)
        texts: dict[str, str | None] = declared.model_dump() if declared else {}
        software = [cell.search.software for cell in cells if cell.search]
        version = next((versions[system.engine] for versions in software if versions.get(system.engine)), None)
        systems[system.name] = [
            f"{system.engine} {version}" if version else system.engine,
            *((texts.get(key) or UNKNOWN).replace("`", "") for key in ("state", *WORDS)),
            _ceiling(records, cells),
        ]
    rows: list[list[Cell]] = [[fact, *texts] for fact, *texts in zip(facts, *systems.values(), strict=True)]
    note = "Unknown: the engine's adapter declares nothing about it."
    blocks: list[Block] = [Table(["", *systems], rows), Note(note)]
    return Section("semantics", "How each engine treats event time", lead, blocks)


def declared_by(record: CellRecord) -> Declared | None:
    """The declaration of a cell's engine about event time; None without one."""
    return record.search.semantics if record.search else None


def revised(record: CellRecord) -> str:
    """Says whether answers of a cell are given twice."""
    declared = declared_by(record)
    return UNKNOWN if declared is None else "yes" if declared.revises else "never"


def _ceiling(records: Records, cells: list[CellRecord]) -> str:
    """The rate at which a system reads and answers nothing, if the run has measured it."""
    for cell in cells:
        if cell.cell.workload in ceilings(records) and cell.rate:
            mark = f"{cell.claim.mark} " if cell.claim.mark else ""
            interval = f" ({between(cell.interval)})" if cell.interval[0] else ""
            return f"{mark}{number(cell.rate)}{interval}"
    return "not measured"


def words(records: Records) -> Section:
    """Explains the terms of the page, and says what the machine cannot show."""
    rows: list[list[Cell]] = [
        [word, meaning.format(max_age=records.benchmark.search.max_age)] for word, meaning in _WORDS
    ]
    return Section(
        "limits",
        "Words and limits",
        "What each term means here, and what these figures do not tell.",
        [Note(limits(records)), Table(["term", "meaning"], rows)],
    )


def limits(records: Records) -> str:
    """Sentences on what this machine cannot show."""
    machines = [environment.machine for environment in records.environments]
    cores = next((machine["cores"] for machine in machines if machine.get("cores")), None)
    if cores is None:
        return "No stage recorded its machine."
    measured = {cell.cell.system for cell in records.cells}
    cpus = {len(system.cpus or ()) for system in records.benchmark.systems if system.name in measured}
    pinned = len(cpus) == 1 and 0 not in cpus
    each = f"each system has {min(cpus)} of them" if pinned else "a system may use several of them"
    return (
        f"This machine has {cores} cores, and {each}: the figures show what disorder costs a core, not how an engine "
        "scales, what shuffles and the network between hosts add, or how a slow partition holds back a watermark."
    )
