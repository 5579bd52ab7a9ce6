"""calibrate, trial, search, check and driver: what they print, and every bad input as one line. No Spark starts."""

from __future__ import annotations

import json
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamgauge.app.airflow.benchmarks import load_all
from streamgauge.catalog.run_log import RunLog
from tests.cli.test_cli import call
from tests.command import Answer
from tests.measure.benches import EVENTS, Bench, write_bench
from tests.measure.conftest import _alone_and_quick
from tests.measure.test_stages import QUICK

__all__ = ["_alone_and_quick"]

CELL = {"--experiment": "e", "--workload": "all", "--system": "known"}


def trial(bench: Bench, *json_: str, command: str = "trial", **options: Any) -> Answer:
    given = {**CELL, **({"--rate": "500", "--seconds": "0.5"} if command == "trial" else {})}
    given |= {f"--{name}": str(value) for name, value in options.items()}
    named = [part for pair in given.items() for part in pair]
    return call(command, bench.file, "--artifacts", bench.store.root, *named, *json_)


def changed(bench: Bench, **keys: Any) -> Path:
    """The benchmark file with other keys."""
    bench.file.write_text(yaml.safe_dump(yaml.safe_load(bench.file.read_text()) | keys))
    return bench.file


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return write_bench(tmp_path, search=QUICK)


# -- figures


def test_search_prints_its_answer_and_each_proof_trial(tmp_path: Path) -> None:
    plan = {**QUICK, "max_rate": 500, "proof_steps": 0}
    bench = write_bench(tmp_path, capacity=40_000, batch_cost="50ms", search=plan)
    for attempt in "12":  # on a busy machine a trial may be invalid
        options = {"run-id": attempt, "proof-steps": 1}
        found = trial(bench, "--json", command="search", **options).json
        if found["outcome"] != "unproven":
            break
    assert (found["outcome"], found["sustainable_rate_events_per_s"]) == ("all_sustained", 500)
    assert found["constraint"] == "driver's ceiling"
    [record] = found["trial_records"]
    assert (record["purpose"], record["rate_events_per_s"], record["outcome"]) == ("below", 350, "sustainable")
    told = trial(bench, command="search", **options).out  # which reads what is there
    assert "sustainable rate  500 events/s  (at least)" in told
    assert "proof trials      caught up at 350, fell further behind at no rate" in told


def test_a_trial_may_begin_behind(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, capacity=2000, search=QUICK)
    slow = trial(bench, "--json", rate=1000, behind=1, seconds=2).json
    assert slow["outcome"] == "sustainable", slow["reason"]
    assert slow["observation"]["samples"][0]["age_s"] == pytest.approx(1, abs=0.3)
    trial(bench, behind=-1).refused("--behind: found -1, allowed: seconds, 0 or more")


def test_a_stream_too_short_for_the_trial_loops_and_says_so(tmp_path: Path) -> None:
    bench = write_bench(tmp_path, events=1000)
    told = trial(bench, rate=2500, seconds=1)
    assert told.code == 0, told.err
    assert "stream      too short for this trial: 3 loops of it, each with later times" in told.out
    [record] = (json.loads(file.read_text()) for file in bench.store.root.glob("runs/*/trial.json"))
    assert record["observation"]["offered"] == record["details"]["emitted"] == 2500
    assert "too short" not in trial(bench, rate=500).out
    for run in bench.store.root.glob("runs/*"):  # its records tell gc that a trial is in progress
        assert [(one.stage, one.state) for one in RunLog(run).stages()] == [("generate", "done"), ("trial", "done")]


LATE = [at - 2_500 if at > 3_000 and at % 50 == 0 else at for at in range(EVENTS)]
WINDOWS = {"name": "all", "query": "windowed_aggregation", "key": "carrier", "value": "flight", "window": "1s"}


def test_what_a_cell_loses_at_its_streams_own_speed_is_told_before_a_trial_and_beside_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Sends an event a millisecond, of which 339 come 2.5 s late, more than 1 s after the end of their window."""
    caplog.set_level(logging.INFO, "streamgauge")
    bench = write_bench(tmp_path, ms=LATE, workloads=[WINDOWS | {"watermark": "1s"}], search=QUICK)
    sentence = (
        "at the stream's own speed the query loses 339 of 20,000 events (1.7 %) in 18 windows, with a watermark after "
        "each event"
    )
    checked = call("check", bench.file, "--artifacts", bench.store.root)
    assert f"  lost    e.all.known: {sentence}\n" in checked.out
    told = trial(bench)
    assert f"lost        not counted in the trial at 0.5 stream seconds a second; {sentence}\n" in told.out
    assert f"e.all.known: {sentence}" in caplog.messages  # before it
    [file] = bench.store.root.glob("runs/*/trial.json")
    loss = json.loads(file.read_text())["lost_at_own_speed"]
    assert (loss["events"], loss["of"], loss["rule"]) == (339, 20_000, "window")
    plan = call("check", bench.file, "--json", "--artifacts", bench.store.root).json
    assert plan["lost_at_own_speed"] == {"e.all.known": loss}
    patient = changed(bench, workloads=[WINDOWS | {"watermark": "3s"}])
    assert "loses 0 of 20,000 events (0.0 %), with" in call("check", patient, "--artifacts", bench.store.root).out


def test_an_invalid_trial_prints_its_record_and_is_no_success(bench: Bench) -> None:
    changed(bench, replay={"max_memory_mb": 64, "max_slip": "1ps"})
    told = trial(bench, "--json")
    assert (told.code, told.err.count("Traceback")) == (1, 0)
    assert "slip" in json.loads(told.out)["observation"]["invalid"]


# -- names and columns


@pytest.mark.parametrize("command", ["trial", "search"])
def test_a_name_that_the_file_does_not_have(bench: Bench, command: str) -> None:
    trial(bench, command=command, workload="w").refused("workload: found 'w', allowed: all")
    trial(bench, command=command, system="flink").refused("system: found 'flink', allowed: known")
    trial(bench, command=command, experiment="x").refused("experiment: found 'x', allowed: e")


WRONG = [
    ({"workloads": [{"name": "w", "query": "q8"}]}, "workloads.w.query: found 'q8', allowed: passthrough, "),
    (
        {"workloads": [{"name": "w", "query": "windowed_join", "key": "origin"}]},
        "workloads.w.key: found 'origin', allowed: carrier, flight (source.columns)",
    ),
    (
        {"workloads": [{"name": "w", "query": "windowed_aggregation", "key": "flight", "value": "carrier"}]},
        "workloads.w.value: carrier is not numeric; allowed: flight",
    ),
    ({"workloads": [{"name": "w", "query": "windowed_join"}]}, "workloads.w.key: windowed_join needs it"),
    (
        {"systems": [{"name": "s", "engine": "storm"}]},
        "systems.0.engine: found 'storm', allowed: spark, flink, known, job, or",
    ),
]


@pytest.mark.parametrize(("keys", "told"), WRONG, ids=[str(told)[:35] for _, told in WRONG])
def test_what_no_cell_could_run_is_refused_by_every_command_and_by_airflow(
    bench: Bench, keys: dict[str, Any], told: str
) -> None:
    file = changed(bench, **keys)
    call("check", file, "--artifacts", bench.store.root).refused(told)
    call("run", file, "--artifacts", bench.store.root).refused(told)
    names = {"workload": keys.get("workloads", [{"name": "all"}])[0]["name"]}
    names |= {"system": keys.get("systems", [{"name": "known"}])[0]["name"]}
    trial(bench, **names).refused(told)
    benchmarks, problems = load_all([file])
    assert benchmarks == {}
    assert told in problems[0]
    assert "\n" not in problems[0]


NO_SYSTEM = """
from streamgauge.bench.driver.system import Adapter, Capabilities
from streamgauge.config.systems import Semantics
class Engine(Adapter): ...
class Ruleless(Adapter):
    start = begin_trial = end_trial = alive = stop = None
class Undeclared(Adapter):
    capabilities = {"pins"}
    rules = start = begin_trial = end_trial = alive = stop = None
class Wordless(Adapter):
    capabilities = Capabilities(semantics={"takes": "rows"})
    rules = start = begin_trial = end_trial = alive = stop = None
class Wrong(Adapter):
    capabilities = property(lambda self: Capabilities(semantics=Semantics(takes="rows", watermark=7)))
    rules = start = begin_trial = end_trial = alive = stop = None
class Other(Adapter):
    rules = start = begin_trial = end_trial = alive = stop = None
    def __init__(self, system, work): 1 / 0
"""


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("no.such:Thing", "no.such:Thing cannot be loaded: ModuleNotFoundError: No module named 'no'"),
        ("streamgauge.bench.engines.known.known_system:Nobody", "cannot be loaded: AttributeError: "),
        ("json:JSONDecoder", "json:JSONDecoder is no class that derives from Adapter; see docs/engines.md"),
        ("json:loads", "json:loads is no class that derives from Adapter; see docs/engines.md"),
        (
            "no_system:Engine",
            "no_system:Engine lacks alive, begin_trial, end_trial, rules, start, stop; see docs/engines.md",
        ),
        ("no_system:Ruleless", "no_system:Ruleless lacks rules; see docs/engines.md"),
        ("no_system:Undeclared", "no_system:Undeclared: found capabilities {'pins'}, allowed: Capabilities(…)"),
        ("no_system:Wordless", "no_system:Wordless: semantics: found {'takes': 'rows'}, allowed: Semantics(…), of"),
        (
            "no_system:Wrong",
            "no_system:Wrong cannot be made: ValidationError: 6 validation errors for Semantics watermark ",
        ),
        ("no_system:Other", "no_system:Other cannot be made: ZeroDivisionError: "),
        ("broken_engine:Engine", "broken_engine:Engine cannot be loaded: RuntimeError: at import"),
    ],
)
def test_an_engine_that_is_no_system(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, told: str
) -> None:
    (tmp_path / "broken_engine.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "no_system.py").write_text(NO_SYSTEM)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = changed(bench, systems=[{"name": "known", "engine": engine}])
    assert call("check", file).code == 0, "its name is one of code, which a check does not run"
    call("check", "--connect", file).refused("systems.known.engine: ", told)
    trial(bench).refused("systems.known.engine: ", told)


# -- verdict functions


@pytest.fixture
def verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_verdicts.py").write_text("def raises(observation, search): return 1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_verdicts", raising=False)


@pytest.mark.usefixtures("verdicts")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("steady", "found 'steady', allowed: recovery, or package.module:function"),
        ("no.such:thing", "no.such:thing cannot be loaded"),
        ("my_verdicts:absent", "my_verdicts:absent cannot be loaded"),
    ],
)
def test_a_verdict_function_that_cannot_be_had_is_told_before_anything_starts(
    bench: Bench, name: str, told: str
) -> None:
    file = changed(bench, search={"verdict": name})
    for answer in (call("check", "--connect", file), trial(bench), trial(bench, command="search")):
        answer.refused("search.verdict: ", told)
    assert not list(bench.store.root.glob("runs/*"))


@pytest.mark.usefixtures("verdicts")
def test_a_verdict_function_that_raises_ends_the_command(bench: Bench) -> None:
    """Nonsense that one returns is refused alike: tests/search/test_verdict.py."""
    changed(bench, search={"warmup_seconds": 0, "verdict": "my_verdicts:raises"})
    trial(bench).refused("search.verdict: my_verdicts:raises raised ZeroDivisionError: division by zero")


# -- numbers and ports


@pytest.mark.parametrize(("rate", "found"), [("0", "0"), ("-5", "-5")])
def test_a_rate_that_is_none(bench: Bench, rate: str, found: str) -> None:
    trial(bench, rate=rate).refused(f"--rate: found {found}, allowed: events per second above 0")
    trial(bench, seconds=rate).refused(f"--seconds: found {found}, allowed: a time above 0")
    trial(bench, rate="1e13").refused("--rate: found 1e+13, allowed: events per second above 0, at most 1e+12")
    trial(bench, seconds="3e6").refused("--seconds: found 3e+06, allowed: a time above 0, at most 30 days")
    call("calibrate", "--capacity", rate).refused(f"capacity: found {found}, allowed: ")
    call("calibrate", "--capacity", rate, "--real").refused(f"capacity: found {found}, allowed: ")


@pytest.mark.parametrize("rate", ["0", "-5", "nan", "inf"])
def test_a_key_that_is_no_rate(bench: Bench, rate: str) -> None:
    key = float(rate)
    call("check", changed(bench, search={"max_rate": key})).refused("search.max_rate: found ")
    call("check", changed(bench, search={}, replay={"queue_seconds": key})).refused("replay.queue_seconds: found ")


def test_a_port_in_use(bench: Bench) -> None:
    stream = next(bench.store.root.glob("data/stream/*/manifest.json")).parent
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        call("driver", stream, "--port", str(port)).refused(
            f"127.0.0.1:{port}: cannot listen on this address", "another port"
        )
    call("driver", stream, "--port", "70000").refused("127.0.0.1:70000: cannot listen on this address", "another port")


@pytest.mark.parametrize("quote", [",", "\n", "“", "''"])
def test_a_quote_that_is_none(bench: Bench, quote: str) -> None:
    source = yaml.safe_load(bench.file.read_text())["source"]
    call("check", changed(bench, source={**source, "quote": quote})).refused("b.yaml:", ": source", "quote")
