"""Six hosts, 5 ms apart, that are network namespaces of this machine: what crosses a network, and who is lost on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamgauge.base.places import is_half
from streamgauge.catalog.artifacts import Store
from streamgauge.config import load
from streamgauge.streams.stages import generate, ingest
from streamgauge.streams.stages.workers import Forked
from tests.e2e.hosts import Hosts, Unavailable
from tests.e2e.processes import left_behind, start, wait_for
from tests.e2e.several_hosts import NAMES, RATE, SECONDS, TOKEN, Site

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]
KNOWN = {"systems": [{"name": "known", "engine": "known", "trigger": "50ms"}]}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        with Hosts(NAMES, delay_ms=5) as hosts, Site(hosts, tmp_path_factory.mktemp("hosts")) as made:
            yield made
    except Unavailable as reason:
        pytest.skip(f"this machine cannot play several hosts: {reason}")


class Crashes:
    """Breaks each host once, at its moment; only then waits for the next one's moment."""

    def __init__(self, site: Site, *moments: tuple[str, Callable[[], bool]]) -> None:
        self._site, self._left = site, list(moments)
        self.lost: list[str] = []

    def __call__(self) -> None:
        if self._left and self._left[0][1]():
            stage, _ = self._left.pop(0)
            self._site.lose("worker1" if len(self.lost) % 2 else "worker2")
            self.lost.append(stage)


@pytest.mark.prove
def test_the_whole_dag_over_hosts_of_which_workers_crash_gives_what_one_host_gives(site: Site, tmp_path: Path) -> None:
    def recorded(name: str) -> bool:
        return any(site.artifacts.glob(f"runs/*/cells/*/{name}"))

    site.cluster()
    crashes = Crashes(
        site,
        ("generate", lambda: any(site.artifacts.glob("data/stream/*.tmp-*"))),
        ("search", lambda: not recorded("search.json") and site.measures(1, hold=True)),
        ("latency", lambda: recorded("search.json") and site.measures(1)),
    )
    found = site.run(crashes)
    assert crashes.lost == ["generate", "search", "latency"]

    benchmark, here = load(site.config()), Store(tmp_path / "here")
    ingest.run(Forked(), benchmark, here)
    one = generate.run(Forked(), benchmark, here, benchmark.experiments[0]).manifest
    assert (found.sha256, found.out_of_order) == (one["sha256"], one["achieved_out_of_order"])
    assert found.out_of_order > 0

    for trial in found.trials:
        assert trial["correct"] is not False, trial["reason"]
        assert trial["observation"]["invalid"] or trial["correct"], "what counts was checked"
    counted = [trial for trial in found.trials if trial["correct"]]
    for trial in counted:
        assert trial["observation"]["offered"] in (RATE * SECONDS, RATE * SECONDS * 2), "a repeat is longer"
        assert trial["observation"]["taken"] == trial["observation"]["offered"]
        offset, bound = trial["details"]["system_clock_offset_ns"]
        assert abs(offset) <= bound < 100e6, "one clock, of which the network hides less than that"
    assert left_behind(site.artifacts) == []
    assert [path for path in site.artifacts.rglob("*") if ".tmp-" in path.name or is_half(path.name)] == []
    assert list(site.artifacts.glob("runs/*/cells/*/work/trial-*")) == []


def test_a_lost_generator_makes_the_trial_invalid_and_is_taken_back(site: Site, tmp_path: Path) -> None:
    config = site.config(**KNOWN)

    def trial(look: Callable[[], object] = lambda: None, *, seconds: float) -> tuple[int, dict[str, Any]]:
        log = tmp_path / "trial.log"
        cell = ["--experiment", "wild", "--workload", "hourly", "--system", "known", "--rate", str(RATE)]
        arguments = ["trial", str(config), *cell, "--seconds", str(seconds), "--artifacts", str(site.artifacts)]
        own = dict.fromkeys(("TMPDIR", "STREAMGAUGE_LOCKS"), str(tmp_path))
        process = start([*arguments, "--json"], log, site.airflow(), **own, **TOKEN)
        try:
            wait_for(lambda: look() or process.poll() is not None, "end of the trial", 240)
            return process.wait(), json.loads(log.read_text().splitlines()[-1])
        finally:
            process.kill()

    killed: list[int] = []

    def lose() -> None:
        if not killed and site.measures(1):
            killed.append(site.hosts.kill("generator2"))

    code, lost = trial(lose, seconds=60)
    assert len(killed) == 1
    assert code == 1
    assert lost["outcome"] == "inconclusive"
    assert site.generators[1] in lost["observation"]["invalid"], "it is named"

    site.generator("generator2")
    wait_for(lambda: site.status(1), "generator that is back", 60)
    code, whole = trial(seconds=5)
    # on a busy machine five seconds may not suffice to call the rate sustainable
    assert (code, whole["observation"]["invalid"]) == (0, None), whole["reason"]
    assert whole["observation"]["offered"] == whole["observation"]["taken"] == 5 * RATE
