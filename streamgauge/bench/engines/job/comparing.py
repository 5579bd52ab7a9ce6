"""Checks the answers of a job in a trial, and reports their latencies over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import cast

from streamgauge.base.errors import UserError
from streamgauge.base.units import PS
from streamgauge.bench.driver.client import Connection
from streamgauge.bench.engines.job.life import JobFigures, Trial
from streamgauge.bench.engines.job.settings import JobAnswer, JobSettings
from streamgauge.bench.publish.answers import Topic, finite, offered, report, without_lost
from streamgauge.bench.publish.publisher import LinkFigures
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.rules import EngineRules, Pace, Rules
from streamgauge.records.trial import Compared
from streamgauge.streams.kafka.values import Decoder

#: Kafka Streams' rules: each partition follows its own stream time, in which records have milliseconds
STREAMS_RULES = Rules(clock="own queue", pace=Pace(step_us=PS["ms"] // PS["us"]), late_counted="none")
#: a session ends at its last event, plus the gap, and is closed from the millisecond after that on
#: (KStreamSessionWindowAggregate). A join forgets whole segments of its store, which is no rule for an event.
STREAMS = EngineRules(
    "Kafka Streams",
    {"tumbling": STREAMS_RULES, "sliding": STREAMS_RULES, "session": replace(STREAMS_RULES, delay_us=1000)},
)


def compared(
    wanted: JobAnswer, decoder: Decoder, trial: Trial, topic: Topic, link: LinkFigures, rules: Rules | None = None
) -> JobFigures:
    """Compares the answers and reports their latencies; returns figures. Raises UserError for unusable answers.

    rules: by which the job drops events, where they are declared.
    """
    from streamgauge.bench.oracle.own_sql import Answers, OwnCheck, one_line_errors

    if wanted.mode == "upsert":
        topic = topic.last_of_each_key()
    if not topic.values:
        raise UserError(
            "the job took all rows and wrote nothing to its output topic; if it waits for later events, it ignores the "
            "sentinel, whose values the key sentinel sets"
        )
    values = _objects([value or b"" for value in topic.values], wanted.format, decoder)
    rows = offered(trial.rows, trial.setup.queues, trial.job.trials)
    if "json" in trial.job.form.values:
        rows = finite(rows)
    given = rows.num_rows
    if rules is not None:
        rows = without_lost(rows, rules, trial.job.system.key)
    # a job that starts again knows its stream's time from further records alone, so it may take some of these
    is_unknown = rows.num_rows < given and bool(trial.job.struck - {"cut"})
    with one_line_errors(), closing(Answers(values, topic.appended_ns, rows)) as answers:
        check = OwnCheck(answers=len(topic.values), unchecked="there is no answer.sql")
        if garbage := answers.garbage():
            raise UserError(garbage)
        if wanted.sql is not None and is_unknown:
            check.unchecked = "what a job drops by answer.grace is not known after it has started again"
            timed = answers.counted()
        elif wanted.sql is not None:
            lateness = None if wanted.lateness is None else wanted.lateness.ps / 1e9
            check, timed = answers.compare(wanted.sql, wanted.key, lateness)
            # those of earlier trials were counted there
            trial.job.copies, check.duplicates = check.duplicates, check.duplicates - trial.job.copies
            check.delivery = "at least once" if check.duplicates else "exactly once"
            check.delivery = None if wanted.mode == "upsert" else check.delivery  # earlier answers of a key are gone
        elif wanted.carried is not None:
            timed = answers.carried(wanted.carried.model_dump())
        else:
            timed = answers.counted()
    setup = trial.setup
    with Connection(setup.endpoints[0], setup.attempt) as wire:
        report(wire, setup.attempt, timed, _clock(wire.clock_offset(), link.get("clock_offset_ns")))
    verdict = check.to_dict()
    if check.unchecked:
        return {"answers": verdict}
    return {"answers": verdict, "check": cast("Compared", verdict)}


def late_rules(system: JobSettings, spec: Spec) -> Rules:
    """Returns the rules by which a job loses events. Raises UserError.

    They are those of `answer.grace`, exactly. Or the job may lose what is later than `answer.lateness`, or nothing.
    """
    lateness, grace = system.answer.lateness, system.answer.grace
    if grace is not None:
        query = find(spec.query)
        if spec.slide_us is not None or query.spans > 1 or query.streams > 1 or query.late == "session":
            raise UserError(
                f"systems.{system.name}.answer.grace: found a workload whose windows overlap, or are sessions or a "
                "join's, allowed: tumbling ones"
            )
        return replace(STREAMS_RULES, operators=spec.operators("window"), delay_us=grace.ps // PS["us"])
    if lateness is None:
        return Rules(spec.operators("never"), late_counted="none")
    return Rules(spec.operators("tolerance"), lateness.ps // PS["us"], late_counted="none")


def _objects(values: list[bytes], form: str, decoder: Decoder) -> list[bytes]:
    """The answers as JSON. Raises UserError for the first one that cannot be read."""
    lines, reasons = decoder.lines(values)
    for at, reason in reasons.items():
        begins = f"its bytes begin {lines[at].decode()}"
        raise UserError(f"answer.format: an answer cannot be read as {form}: {reason}; {begins}")
    return lines


def _clock(driver: tuple[int, int], broker: Sequence[int] | None) -> tuple[int, int] | None:
    """The driver's clock minus the broker's, and its error bound, ns; from both to ours."""
    return None if broker is None else (driver[0] + broker[0], driver[1] + broker[1])
