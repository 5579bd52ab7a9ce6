"""The stage advice (events, profile -> advice): how long a workload shall wait for late events of the source."""

from __future__ import annotations

import logging

from streamgauge.base.units import PS, Tick
from streamgauge.bench.workloads import Spec, find
from streamgauge.catalog.artifacts import Artifact, Build, Store, key_of
from streamgauge.config import Benchmark, Promise, Workload
from streamgauge.records.advice import Advice, Question
from streamgauge.records.profile import UNMERGED, Profile
from streamgauge.streams.advice import words
from streamgauge.streams.advice.promise import decimal
from streamgauge.streams.keys import events_key, profile_key
from streamgauge.streams.stages import advise
from streamgauge.streams.stages.workers import Workers

log = logging.getLogger("streamgauge")
FILE = "advice.json"


def run(workers: Workers, benchmark: Benchmark, store: Store, workload: Workload) -> Artifact:
    """Returns the artifact of a workload's advice, built unless it is there; a log line says what it advises.

    Where a workload asks nothing that a delay decides, the advice is null with that reason. Raises UserError.
    """
    spec, promise = Spec.of(workload, benchmark.source.kinds, whole=True), benchmark.advice or Promise(lost_percent=1)

    def make(build: Build) -> None:
        profile = Profile.read(store.need("profile", profile_key(store, benchmark), "analyze").file("profile.json"))
        ticks = PS["us"] // PS[profile.tick]
        question = question_of(spec, promise, ticks)
        if isinstance(question, str) or not benchmark.source.is_merged:
            reason = question if isinstance(question, str) else UNMERGED
            advice = _none(profile, reason)
        else:
            events = store.need("events", events_key(store, benchmark), "ingest")
            advice = advise.measure(workers, events, question, [spec.watermark_ms * 1000 * ticks])
        advice.write(build.path / FILE)
        build.manifest |= {"workload": workload.name}

    settings = [spec.to_dict(), promise.model_dump()]
    artifact = store.made("advice", key_of("advice", events_key(store, benchmark), workload.name, settings), make)
    log.info("workload %s: %s", workload.name, words.of_workload(of(artifact)))
    return artifact


def of(artifact: Artifact) -> Advice:
    """Reads the advice of an artifact. Raises Damaged."""
    return Advice.read(artifact.file(FILE))


def question_of(spec: Spec, promise: Promise, ticks: int) -> Question | str:
    """Returns the question of a workload in ticks, so many of which are a microsecond; or why a delay decides nothing.

    Windows are taken by key only if the promise is of windows, as no key decides which event is lost.
    """
    query, lost = find(spec.query), promise.lost_percent
    if query.late == "never":
        return f"{query.name} loses no event, whatever its watermark"
    if query.reads or query.streams > 1 or query.spans > 1:
        return f"{query.name} reads a part of the events, or more than one stream, which an advice does not follow"
    if query.late == "event" and lost is None:
        return f"{query.name} takes each event by itself, and a promise of windows says nothing of it"
    share = float(decimal(lost if lost is not None else promise.windows_wrong_percent or 0.0) / 100)
    length, slide = spec.length_us * ticks, spec.step_us * ticks
    if query.late == "event":
        return Question(answers="event", target="lost", share=share)
    if query.late == "session":
        return Question(answers="session", length=spec.window_us * ticks, key=spec.key,
                        target="lost" if lost is not None else "windows_wrong", share=share)  # fmt: skip
    answers, target = "tumbling" if slide == length else "sliding", "lost" if lost is not None else "windows_wrong"
    return Question(
        answers=answers, length=length, slide=slide, key=spec.key if lost is None else None, target=target, share=share
    )


def _none(profile: Profile, reason: str) -> Advice:
    tick: Tick = profile.tick
    return Advice(
        events=profile.events, tick=tick, event_time=profile.event_time, question=Question(answers="event"),
        curve=(), advised=None, reason=reason, blocks=0, rules=(),
    )  # fmt: skip
