"""The whole gate: two checkouts that are built, their systems, the pairs, and the files with the verdict."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

from streamgauge import config
from streamgauge.app.gate.building import build
from streamgauge.app.gate.pairs import RECORD, REPETITIONS, Measuring, Pairs, name_of
from streamgauge.app.gate.repository import SHORT, Commits, Repository
from streamgauge.base.environment import environment
from streamgauge.base.errors import UserError
from streamgauge.base.jsonl import delete_log
from streamgauge.base.places import as_user_error
from streamgauge.bench.compare import gate_rules
from streamgauge.bench.compare.forms import as_comment, as_junit
from streamgauge.bench.compare.release_rules import decide
from streamgauge.bench.measure.lock import measuring
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.config.gate import Accepted, Gate, accepted_in
from streamgauge.config.reading import parsed
from streamgauge.config.systems import System
from streamgauge.records.gate import GateCheck
from streamgauge.records.release import Reason, Side, State
from streamgauge.stats.sequential import POWER

log = logging.getLogger("streamgauge")
COMMENT, JUNIT, LOG = "comment.md", "junit.xml", "build-{}.log"
#: folders of a gate while it runs, whatever else lies beside them
CHECKOUTS, WORK = "gate-checkouts", "gate-work"


@dataclass
class Clock:
    """Minutes by what they were spent on."""

    minutes: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def spending(self, what: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.minutes[what] = self.minutes.get(what, 0.0) + (time.monotonic() - began) / 60


@dataclass(frozen=True)
class Asked:
    """Request for a gate: the file, the repository with both commits as they were named, and the folder to write."""

    file: Path
    repository: Repository
    base: str
    head: str
    commits: Commits
    output: Path


def with_settings_of_base(benchmark: Benchmark, asked: Asked) -> tuple[Benchmark, list[Reason]]:
    """The benchmark with the section gate of the base's copy of the file, so that no head chooses its own judge.

    Without such a section it stays as it is. The reasons tell that, and in which sections the head's copy differs from
    the base's: what others have merged meanwhile is in neither.
    """
    base, head = (_keys_at(commit, asked) for commit in (asked.commits.base, asked.commits.head))
    ours, judge, theirs = benchmark.gate, _gate_in(base), _gate_in(head)
    reasons = []

    def tell(what: str, why: str, state: State = "note") -> None:
        reasons.append(Reason("settings", state, what, why))

    if judge:
        new = _system_of(benchmark, ours) if ours else None
        if new and _system_of(benchmark, judge) is None:
            why = f"{new!r}, as the named file says, which has none that the base's copy names"
            tell("gate.system", why, "open" if judge.system else "note")
            judge = judge.model_copy(update={"system": new})
        if head and (theirs is None or theirs.model_copy(update={"build": judge.build}) != judge):
            tell("gate", "those of the base's copy decide; the head's copy has others")
    elif ours and theirs:
        why = "the base has no copy of this file with a valid section gate, so the head's settings judge"
        if _is_lax(ours):
            tell("gate", f"{why}, which are laxer than the defaults", "open")
        else:
            tell("gate", why)
    for key in sorted({*base, *head} - {"systems", "gate"}) if base and head else ():
        if base.get(key) != head.get(key):
            tell(key, "other than in the base's copy; those of the named file hold for both")
    return benchmark.model_copy(update={"gate": judge or ours}), reasons


def _keys_at(commit: str, asked: Asked) -> dict[str, Any]:
    """The keys of a commit's copy of the file; none without one. A mistake in it is told when its system is read."""
    inside = asked.repository.inside(asked.file)
    text = asked.repository.text(commit, inside) if inside else None
    try:
        return parsed(asked.file, text) if text else {}
    except UserError:
        return {}


def _gate_in(keys: Mapping[str, Any]) -> Gate | None:
    with suppress(KeyError, UserError):  # an older copy may have keys that nobody knows any more
        return config.parse(Gate, keys["gate"], "gate")
    return None


def _is_lax(gate: Gate) -> bool:
    """True if a head may pass that would not by the defaults."""
    usual = Gate(rate=gate.rate or 1)
    return (
        gate.slower_percent > usual.slower_percent or gate.answers == "skip" or not {*usual.compare} <= {*gate.compare}
    )


def settings_of(benchmark: Benchmark) -> tuple[Gate, str]:
    """The section gate, and the name of the system to compare. Raises UserError."""
    if benchmark.gate is None:
        raise UserError(f"{benchmark.name}: gate: this key is missing; a gate needs at least its rate")
    if not benchmark.workloads:
        raise UserError(f"{benchmark.name}: workloads: found none, allowed: one or more to measure")
    chosen = _system_of(benchmark, benchmark.gate)
    if chosen is None:
        shown = repr(benchmark.gate.system) if benchmark.gate.system else "none"
        names = ", ".join(system.name for system in benchmark.systems)
        raise UserError(f"{benchmark.name}: gate.system: found {shown}, allowed: {names or 'a system'}")
    return benchmark.gate, chosen


def _system_of(benchmark: Benchmark, gate: Gate) -> str | None:
    """The system that is compared by these settings; None if the file has none that they mean."""
    names = [system.name for system in benchmark.systems]
    chosen = gate.system or (names[0] if len(names) == 1 else None)
    return chosen if chosen in names else None


def forget(output: Path) -> None:
    """Deletes an earlier gate's verdict, which would outlive one that ends without any. Raises UserError."""
    try:
        if (output / RECORD).exists():  # a gate that has finished begins anew
            delete_log(output / REPETITIONS)
        for name in (COMMENT, JUNIT, RECORD, *map(LOG.format, gate_rules.NAMES.values())):
            (output / name).unlink(missing_ok=True)
    except OSError as problem:
        raise as_user_error(problem, output) from None


def run(benchmark: Benchmark, store: Store, asked: Asked, clock: Clock, notes: Iterable[Reason] = ()) -> GateCheck:
    """Builds and measures both commits; writes the verdict's files and returns its record. Raises UserError.

    notes: reasons that are known before.
    """
    settings, system = settings_of(benchmark)
    cells = [name_of(cell) for cell in benchmark.all_cells() if cell.system == system]
    pairs = Pairs.of(asked.output, _key(benchmark, asked.commits))
    if pairs.repetitions:
        log.info("going on with %d processes that an unfinished gate has measured", len(pairs.repetitions))
    with asked.repository.checkouts(asked.commits, asked.output / CHECKOUTS) as (base, head):
        accepted = gate_rules.acceptances(
            accepted_in(head / settings.accepted),
            _earlier(base / settings.accepted),
            datetime.now(UTC).date(),
            product(cells, settings.metrics),
        )
        checkouts: dict[Side, Path] = {"baseline": base, "candidate": head}
        sides: dict[Side, Benchmark] = {}
        doubts: list[Reason] = []
        for side, checkout in checkouts.items():
            name = gate_rules.NAMES[side]
            own, doubt = _copy_in(checkout, asked, system)
            if doubt:
                log.warning("%s: %s", name, doubt)
                doubts.append(Reason("settings", "open", name, doubt))
            command = own.gate.build if own.gate else settings.build
            if command is not None:
                with clock.spending("building"):
                    build(command, checkout, name, asked.output / LOG.format(name), settings.build_timeout.seconds)
            sides[side] = _with(benchmark, system, own.system(system))
            sides[side].system(system).check_installed()
        if keys := differing(sides, checkouts, system):
            why = f"other than in the base's copy, and each side has its own: {', '.join(keys)}"
            doubts.append(Reason("settings", "note", f"systems.{system}", why))
        budget_s = 60 * settings.minutes
        counted = [one for one, entry in accepted if entry.state == "counts"]
        with (
            measuring(f"{asked.output} gate", expected_s=budget_s) as token,
            clock.spending("measuring"),
        ):
            work = asked.output / WORK
            reasons, series = Measuring(sides, store, pairs, work, budget_s).run(counted, token)
    release = decide([*reasons, *pairs.left_out(), *doubts, *notes], series)
    check = GateCheck(
        run=asked.output.name,
        benchmark=benchmark.name,
        baseline=asked.commits.base[:SHORT],
        candidate=asked.commits.head[:SHORT],
        verdict=release.decision,
        line=gate_rules.line_of(release, series, settings),
        repository=asked.repository.top.name,
        base=asked.base,
        head=asked.head,
        base_commit=asked.commits.base,
        head_commit=asked.commits.head,
        system=system,
        exit_code=gate_rules.exit_code(release.decision, settings.inconclusive),
        inconclusive=settings.inconclusive,
        reasons=tuple(release.reasons),
        series=tuple(series),
        accepted=tuple(entry for _, entry in accepted),
        pairs=pairs.last,
        minutes={what: round(minutes, 2) for what, minutes in clock.minutes.items()},
        budget_minutes=settings.minutes,
        false_alarm=gate_rules.ERROR,
        power=POWER,
        environment=environment(),
    )
    _write(check, asked.output)
    return check


def _write(check: GateCheck, output: Path) -> None:
    """Writes the comment and JUnit's file, and the record last: with it, the gate is finished."""
    forms = {COMMENT: as_comment(check), JUNIT: as_junit(check, "gate", warns=check.inconclusive == "warn")}
    for name, text in forms.items():
        try:
            (output / name).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise as_user_error(problem, output / name) from None
    check.write(output / RECORD)


def _with(benchmark: Benchmark, name: str, system: System) -> Benchmark:
    """The benchmark with that system alone."""
    cells = tuple(cell for cell in benchmark.all_cells() if cell.system == name)
    if not cells:
        raise UserError(f"{benchmark.name}: cells: found none of {name}, the system that the gate compares")
    return benchmark.model_copy(update={"systems": (system,), "cells": cells})


def differing(sides: Mapping[Side, Benchmark], checkouts: Mapping[Side, Path], system: str) -> list[str]:
    """Keys of the system in which both sides differ, by more than the folder of their checkout."""
    base, head = (
        {key: str(value).replace(str(place), "") for key, value in sides[side].system(system).model_dump().items()}
        for side, place in checkouts.items()
    )
    return [key for key in {**base, **head} if base.get(key) != head.get(key)]


def _copy_in(checkout: Path, asked: Asked, system: str) -> tuple[Benchmark, str | None]:
    """A checkout's own copy of the file, or else ours, and why it is ours where it has one.

    Names in its systems are those of the checkout.
    """
    inside = asked.repository.inside(asked.file)
    folder = checkout if inside is None else (checkout / inside).parent
    doubt = None
    if inside is not None and (checkout / inside).is_file():
        try:
            own = config.load(checkout / inside)
            own.system(system)
            return own, None
        except UserError as problem:  # an older copy may have keys that nobody knows any more
            why = str(problem).replace(f"{checkout}/", "")
            doubt = f"its settings are those of the named file, as its own copy cannot be used: {why}"
    return config.load(asked.file, systems_at=folder), doubt


def _earlier(file: Path) -> tuple[Accepted, ...]:
    """Entries that the base accepted; none if its file is not of the form that is read today."""
    with suppress(UserError):
        return accepted_in(file)
    return ()


def _key(benchmark: Benchmark, commits: Commits) -> str:
    return hashlib.sha256(f"{commits.base} {commits.head} {config.fingerprint(benchmark)}".encode()).hexdigest()[:16]
