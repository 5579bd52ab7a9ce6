"""The fit of outages to a profile: lengths that are known, and a stream made from outages and made again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamgauge.base.errors import UserError
from streamgauge.base.units import Duration
from streamgauge.catalog.artifacts import Artifact, ScratchStore
from streamgauge.config import Experiment, Source, parse
from streamgauge.records.manifests import StreamManifest
from streamgauge.records.profile import Profile, part_name
from streamgauge.records.validation import Likeness
from streamgauge.streams.disorder.delays import NEVER
from streamgauge.streams.disorder.outage_fit import WHOLE, Fit, _lengths, fit
from streamgauge.streams.disorder.outages import Outages, delays_of, hash_of
from streamgauge.streams.disorder.profile import Spread
from streamgauge.streams.keys import Scaled
from streamgauge.streams.stages import analyze, by_part, generate, ingest
from streamgauge.streams.stages.likeness import compare
from streamgauge.streams.stages.workers import Forked

WORKERS = Forked(2)
FEW = np.random.default_rng(1)


@pytest.mark.parametrize(
    "draw",
    [lambda n: np.full(n, 600), lambda n: FEW.integers(100, 900, n), lambda n: FEW.choice([100, 800], n, p=[0.8, 0.2])],
    ids=["constant", "uniform", "two"],
)
def test_lengths_are_found_again_from_delays_alone(draw: Callable[[int], np.ndarray]) -> None:
    lengths = draw(400_000)
    met = FEW.choice(lengths, 400_000, p=lengths / lengths.sum())  # an event falls into a long outage more often
    histogram = Spread.of(np.maximum(1, np.ceil(FEW.random(len(met)) * met)).astype(np.int64)).histogram()
    found = np.array(_lengths(histogram, 1.0, 1, 10_000).ticks)
    assert np.mean(found) == pytest.approx(lengths.mean(), rel=0.15)  # a bin is a quarter of a doubling wide
    assert np.quantile(found, [0.5, 0.9]) == pytest.approx(np.quantile(lengths, [0.5, 0.9]), rel=0.15)


def stream(store: ScratchStore, source: Scaled, percent: float, delay: dict[str, Any]) -> Artifact:
    raw = {"name": "e", "target_percent": percent, "delay": delay, "outputs": ["csv"]}
    ingest.run(WORKERS, source, store)
    return generate.run(WORKERS, source, store, parse(Experiment, raw, "test"))


def source(file: Path, **more: object) -> Scaled:
    raw = {"files": str(file), "time": {"column": "t", "unit": "ms"}, "columns": {"device": "string"}, "by": "device"}
    return Scaled(parse(Source, raw | more, "test"))


def test_a_stream_with_outages_is_made_again_from_its_profile(tmp_path: Path) -> None:
    rng, store = np.random.default_rng(2), ScratchStore(tmp_path / "store")
    names = rng.choice(["a", "b", "c", "d", "e"], 40_000, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    times = np.sort(rng.integers(0, 40_000_000, 40_000))
    rows = zip(times.tolist(), names.tolist(), strict=True)
    (tmp_path / "sorted.csv").write_text("t,device\n" + "".join(f"{t},{name}\n" for t, name in rows))
    outages = {"by": "device", "spacing": "600s"}
    delay = {"distribution": "exponential", "mean": "120s", "max": "15m", "outages": outages}
    real = stream(store, source(tmp_path / "sorted.csv"), 15, delay)
    lines = (real.path / "stream.csv").read_text().splitlines()
    (tmp_path / "real.csv").write_text("t,device\n" + "".join(line.split(",", 2)[2] + "\n" for line in lines[1:]))
    as_it_came = source(tmp_path / "real.csv")
    ingest.run(WORKERS, as_it_came, store)
    file = analyze.run(WORKERS, as_it_came, store).path / "profile.json"
    profile = Profile.read(file)
    assert profile.out_of_order == 6_000
    like = {"max": "15m", "outages": {"by": "device", "like": str(file)}}
    alike = likeness(store, source(tmp_path / "sorted.csv"), like, file, profile)
    scattered = {"max": "15m", "distribution": "empirical", "profile": str(file)}
    other = likeness(store, source(tmp_path / "sorted.csv"), scattered, file, profile)
    assert alike.made.out_of_order == other.made.out_of_order == 6_000
    assert alike.delay_distance < 0.1
    assert alike.part_distance < 0.1
    bursts = [one.bursts.mean or 0 for one in (alike.given, alike.made, other.made)]
    assert bursts[1] == pytest.approx(bursts[0], rel=0.3)
    assert bursts[2] < bursts[0] / 5


def fitted(tmp_path: Path, rows: list[tuple[int, str]], by_type: str = "string") -> Fit:
    file, store = tmp_path / "f.csv", ScratchStore(tmp_path / "store")
    file.write_text("t,device\n" + "".join(f"{t},{name}\n" for t, name in rows))
    given = source(file, columns={"device": by_type})
    ingest.run(WORKERS, given, store)
    profile = Profile.read(analyze.run(WORKERS, given, store).path / "profile.json")
    return fit(profile, "device", "ns", 1, 10**10)


def test_if_only_small_parts_are_late_they_have_all_outages(tmp_path: Path) -> None:
    rows = [(10 * n, "a") for n in range(995)]
    rows[500:500] = [(10 * n, "b") for n in range(5)]
    assert fitted(tmp_path, rows).shares == {"a": 0, "b": WHOLE}


def test_events_without_a_part_have_a_share_of_their_own(tmp_path: Path) -> None:
    rows = [(10 * n + (5_000 if n % 2 else 0), "1") for n in range(500)]
    rows += [(10_100 + 10 * n, "") for n in range(500)]
    found = fitted(tmp_path, rows, "int64")
    assert found.shares[part_name(None)] == 0
    model = Outages(found.lengths, found.lengths, "device", 0, 0, found.shares)
    select = np.zeros(2, np.uint16)
    names = np.array([hash_of("1"), hash_of(None)], np.int64)
    assert (model._shared(select, names, np.array([0, 1], np.int64)) == NEVER).tolist() == [False, True]


def likeness(store: ScratchStore, given: Scaled, delay: dict[str, Any], file: Path, profile: Profile) -> Likeness:
    made = stream(store, given, 15, delay)
    manifest = made.read(StreamManifest)
    parts = by_part.measure(WORKERS, made, by_part.Parts("device"), Duration(0), manifest.tick)
    assert sum(one.out_of_order_in_all or 0 for one in parts.parts) == manifest.achieved_out_of_order
    return compare(str(file), profile, manifest, parts)


def test_a_profile_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    file, store = tmp_path / "sorted.csv", ScratchStore(tmp_path / "store")
    file.write_text("t,device\n1,a\n2,b\n")
    ingest.run(WORKERS, source(file), store)
    profile = analyze.run(WORKERS, source(file), store).path / "profile.json"
    for by, like, message in (
        ("device", profile, "found a profile without events out of order, allowed: one with some"),
        ("other", profile, r"found a profile by device, allowed: one by other \(analyze --by other\)"),
        ("device", tmp_path / "none.json", r"delay.outages.like .*none.json: cannot be read"),
        ("device", file, r"delay.outages.like .*sorted.csv"),
    ):
        raw = {"name": "e", "target_percent": 5, "delay": {"max": "9s", "outages": {"by": by, "like": str(like)}}}
        with pytest.raises(UserError, match=message):
            delays_of(parse(Experiment, raw, "test").delay, "ns")
