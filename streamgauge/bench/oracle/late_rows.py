"""Computes which rows a watermark rightly dropped in a trial, from the rows and the batches that took them. Pure.

Micro-batch n drops the rows that are late by the watermark with which batch n − 1 closed its windows, or by its own, as
the engine declares (`Pace.behind`). Before the first batch the watermark is the one with which the engine begins
(`Rules.begins_ms`). What is late depends on the rules: see `streams.lateness.late`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamgauge.base.arrow import Ints, Mask
from streamgauge.bench.oracle.batches import BatchLog, taken_by
from streamgauge.bench.oracle.session_deals import deals, numbered, plain_zeros
from streamgauge.bench.oracle.watermarks import Watermarks, recomputed
from streamgauge.bench.workloads import Spec, find
from streamgauge.records.rules import Operator, Rules
from streamgauge.streams.lateness.late import first_ends, late
from streamgauge.streams.lateness.sessions import left_out
from streamgauge.streams.lateness.watermark import Watermark


class Unknowable(ValueError):
    """The right answer depends on an order that nobody knows, so no output can be called wrong."""


def late_watermarks_us(batches: Ints, logs: Sequence[BatchLog], rules: Rules) -> Ints:
    """Returns, for each of these batch numbers, the watermark by which its rows were judged late, µs."""
    return closed_watermarks_us(batches + 1 if rules.pace.behind == 1 else batches, logs, rules)


def closed_watermarks_us(batches: Ints, logs: Sequence[BatchLog], rules: Rules) -> Ints:
    """Returns, for each of these batch numbers, the watermark with which the batch before closed its windows, µs."""
    logs = sorted(logs, key=lambda log: log.batch_id)
    before = np.array([rules.begins_ms, *[log.watermark_ms for log in logs]], np.int64)
    return before[batches] * 1000


@dataclass(frozen=True)
class Kept:
    """The rows that one tumbling part of a query must have counted."""

    spec: Spec
    rows: pa.Table
    masks: tuple[pa.BooleanArray | None, ...]  # for each frame, which rows stay; None: all of them

    @property
    def frames(self) -> tuple[pa.Table, ...]:
        """A table for each frame, made on demand: a sliding window has as many parts as slides."""
        return tuple(self.rows if mask is None else self.rows.filter(mask) for mask in self.masks)


@dataclass(frozen=True)
class Expectation:
    parts: tuple[Kept, ...]  # the answer is the union of theirs
    late: int  # drops in what the engine counts: rows or groups, for each window and frame, or events in no window
    wrong_watermark: str | None  # one line on the first logged watermark that the rows do not imply
    watermarks_checked: bool
    late_events: int = 0  # events in no window at all, whatever the engine counts
    early_events: int = 0  # of them, those before the engine's first watermark


def expectation(rows: pa.Table, logs: Sequence[BatchLog], spec: Spec, rules: Rules) -> Expectation:
    """Returns what a trial must have answered and dropped.

    rows: without sentinels; the wire's columns, and partition and row, which say where each was offered. Raises
    ValueError for logs that leave batches or rows out.
    """
    counts = rules.late_counted
    whole = rows.drop_columns(["partition", "row"])
    if rules.kind == "never":
        checked = recomputed(rows, [], logs, spec, rules).checked
        return Expectation((Kept(spec, whole, (None,) * len(rules.operators)),), 0, None, checked)
    if rules.clock == "own queue" and len(pc.unique(rows["partition"])) > 1:
        raise Unknowable("each queue has its own watermark, and the account has one for all of them")
    event_ts = rows["event_ts"].cast(pa.int64()).to_numpy()
    taken = [taken_by(rows, logs, frame) for frame in range(len(rules.operators))]
    if rules.clock == "own key":
        right, by_key = Watermarks(tuple(logs), None, True), own_key_watermarks_us(rows, spec, rules)
    else:
        right, by_key = recomputed(rows, taken, logs, spec, rules), None
    parts: list[Kept] = []
    dropped = 0
    nowhere = [np.ones(rows.num_rows, bool) for _ in taken]  # late for each window that could have held it
    anywhere = [np.zeros(rows.num_rows, bool) for _ in taken]
    early = [np.ones(rows.num_rows, bool) for _ in taken]
    begin = np.full(rows.num_rows, rules.begins_ms * 1000)
    for part in spec.tumbling():
        masks: list[pa.BooleanArray | None] = []
        operators = [_of_part(one, part) for one in rules.operators]
        for frame, (batches, operator) in enumerate(zip(taken, operators, strict=True)):
            judged = late_watermarks_us(batches, right.logs, rules) if by_key is None else by_key
            watermarks = judged - operator.lag_us
            early[frame] &= late(event_ts, begin, operator, rules)
            gone = late(event_ts, watermarks, operator, rules)
            read = concerned(rows, frame, part)
            if operator.kind == "session" and rules.joins_first:
                gone = touches_no_open_session(rows, read, watermarks, part)
            nowhere[frame] &= gone | ~read
            anywhere[frame] |= read
            dropped += counted(rows, batches, gone & read, frame, part, counts)
            if operator.kind == "session":
                kept, stay = whole.filter(pa.array(~gone)), ~gone
                closed = (
                    watermarks[stay] if rules.joins_first else closed_watermarks_us(batches[stay], right.logs, rules)
                )
                deal = deals(kept[str(spec.key)], event_ts[stay], batches[stay], closed, spec.window_us)
                parts += [Kept(part, kept, (pa.array(deal == n),)) for n in range(deal.max(initial=0) + 1)]
            else:
                masks.append(pa.array(~gone) if gone.any() else None)
        if masks:
            parts.append(Kept(part, whole, tuple(masks)))
    lost = [gone & read for gone, read in zip(nowhere, anywhere, strict=True)]
    late_events = sum(int(gone.sum()) for gone in lost)
    early_events = sum(int((gone & one).sum()) for gone, one in zip(lost, early, strict=True))
    if counts == "events in no window":
        dropped = late_events
    return Expectation(tuple(parts), dropped, right.wrong, right.checked, late_events, early_events)


def _of_part(operator: Operator, part: Spec) -> Operator:
    """The operator with the windows of one tumbling part."""
    if operator.kind != "window":
        return operator
    return replace(operator, length_us=part.length_us, slide_us=part.length_us, offset_us=part.offset_us)


def own_key_watermarks_us(rows: pa.Table, spec: Spec, rules: Rules) -> Ints:
    """Returns the watermark of each event's key, which follows the largest time of that key so far, µs.

    Raises Unknowable for several queues, because nobody knows in which order their rows were taken, and for sessions.
    """
    if len(pc.unique(rows["partition"])) > 1:
        raise Unknowable("each key has its own watermark: of several queues the order of events is not known")
    if any(operator.kind == "session" for operator in rules.operators):
        raise Unknowable("each key has its own watermark: when its sessions close is not known")
    event_ts = rows["event_ts"].cast(pa.int64()).to_numpy()
    order = np.argsort(rows["row"].to_numpy(), kind="stable")
    keys = numbered(rows[str(spec.key)])
    watermarks = np.empty(len(order), np.int64)
    watermarks[order] = Watermark(rules).next(event_ts[order], event_ts[order], keys[order])
    return watermarks


def touches_no_open_session(rows: pa.Table, read: Mask, watermarks_us: Ints, spec: Spec) -> Mask:
    """Marks rows by sessions.left_out. Raises Unknowable if it depends on the order of events in several queues."""
    event_ts = rows["event_ts"].cast(pa.int64()).to_numpy()
    late_alone = event_ts + spec.window_us <= watermarks_us
    if len(pc.unique(rows["partition"])) > 1 and (late_alone & read).any():
        raise Unknowable("a late event may join an open session: of several queues the order of events is not known")
    order = np.flatnonzero(read)[np.argsort(rows["row"].to_numpy()[read], kind="stable")]
    gone = np.zeros(len(event_ts), bool)
    keys = rows[str(spec.key)].take(pa.array(order))
    gone[order] = left_out(numbered(keys), event_ts[order], watermarks_us[order], spec.window_us)
    return gone


def counted(rows: pa.Table, batches: Ints, gone: Mask, frame: int, part: Spec, counts: str = "groups") -> int:
    """Counts dropped rows as the engine does: where it groups before it drops, a group counts once per micro-batch.

    Windows are grouped over all partitions together. Sessions are grouped in each partition, by event time, because
    each event begins as a session of its own.
    """
    query = find(part.query)
    if counts != "groups" or not gone.any():
        return int(gone.sum())
    late_rows = rows.filter(pa.array(gone))
    event_ts = late_rows["event_ts"].cast(pa.int64()).to_numpy()
    names = query.groups[frame] if query.groups else (str(part.key),)
    groups = [plain_zeros(late_rows[name]) for name in names]
    groups += [pa.array(batches[gone])]
    groups += (
        [late_rows["partition"], pa.array(event_ts)]
        if query.late == "session"
        else [pa.array(first_ends(event_ts, part.operators()[0]))]
    )
    named = pa.Table.from_arrays(groups, [str(number) for number in range(len(groups))])
    return int(named.group_by(named.column_names).aggregate([]).num_rows)


def concerned(rows: pa.Table, frame: int, part: Spec) -> Mask:
    """True for the rows of a frame that reach the engine's windows; the query filters out the others before."""
    query = find(part.query)
    if query.reads:
        columns = (pc.is_in(rows[name], pa.array(values)).to_numpy() for name, values in query.reads[frame].items())
        return np.asarray(np.logical_and.reduce(list(columns)))
    event_ts = rows["event_ts"].cast(pa.int64()).to_numpy()
    if query.streams == 2:  # each frame reads the whole stream
        known = rows[str(part.key)].is_valid().to_numpy() if frame else np.ones(rows.num_rows, bool)
        return np.asarray(known & (np.mod(event_ts + rows["seq"].to_numpy(), 2) == frame))
    if query.spans > 1:
        second = pc.fill_null(pc.equal(rows[str(part.value)].cast(pa.string()), part.mark), False).to_numpy()
        return np.asarray(second | (event_ts >= first_ends(event_ts, part.operators()[0]) - part.window_us))
    return np.ones(rows.num_rows, bool)
