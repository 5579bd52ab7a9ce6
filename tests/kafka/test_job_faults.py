"""The faults that a job declares by commands: they are run to their end, and what is not declared has its reason."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import ValidationError

from streamgauge.base import secrets
from streamgauge.base.errors import UserError
from streamgauge.bench.driver.system import NotStruck, TrialSetup
from streamgauge.bench.engines.job.job_system import JobSystem
from streamgauge.bench.engines.job.life import Job, mend_left
from streamgauge.bench.engines.job.settings import JobSettings
from streamgauge.bench.engines.job.templates import PLACES, Places
from streamgauge.bench.measurements.recovery.stage import why_not
from streamgauge.streams.kafka.records import Form
from tests.measure.benches import write_bench

TOUCH = ["touch", "{work}/{group}"]


def settings(**faults: Any) -> JobSettings:
    command = [sys.executable, "-c", "import time; print('first', flush=True); time.sleep(60)"]
    about = {"name": "mine", "engine": "job", "bootstrap": "127.0.0.1:9092", "command": command}
    return JobSettings.model_validate(about | {"faults": faults, "environment": {"NAME": "of {group}"}})


def in_group_g(work: Path) -> Places:
    return Places(**dict.fromkeys(PLACES, "") | {"group": "g", "work": str(work)})


@contextmanager
def started(place: Path, **faults: Any) -> Iterator[Job]:
    job = Job(settings(**faults), in_group_g(place), Form("json"), None, place / "logs")
    job.start()
    try:
        yield job
    finally:
        job.end()


def wait(job: Job) -> int:
    while (code := job.command.exit_code()) is None:
        time.sleep(0.01)
    return code


def test_a_declared_command_brings_the_fault_about_with_places_and_environment(tmp_path: Path) -> None:
    with started(tmp_path, restart=["sh", "-c", 'echo "$NAME" > {work}/struck']) as job:
        job.strike("restart")
        assert job.command.exit_code() is None, "the job itself goes on"
    assert (tmp_path / "struck").read_text() == "of g\n"
    assert sorted(one.name for one in (tmp_path / "logs").iterdir()) == ["g-restart.log", "g.log"]


def test_what_was_cut_is_mended_in_time_or_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "g"
    with started(tmp_path, cut=TOUCH, heal=["rm", "{work}/{group}"]) as job:
        job.strike("cut")
        assert file.exists()
        assert (job.mended(), job.mended()) == (True, False)
        assert not file.exists()
        job.strike("cut")
    assert not file.exists()


def test_what_could_not_be_mended_stays_to_be_mended_and_so_it_does_when_we_are_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heals = {"cut": TOUCH, "heal": ["sh", "-c", "test -e {work}/may && rm {work}/{group}"]}
    with started(tmp_path, **heals) as job:
        job.strike("cut")
        for _ in range(2):
            with pytest.raises(NotStruck, match=r"^faults\.heal: it ended with 1; "):
                job.mended()
        assert not job.goes_on
    assert "the network of the job g may still be cut: faults.heal: it ended with 1" in caplog.text
    system = JobSystem(settings(**heals), tmp_path)
    setup = cast(TrialSetup, SimpleNamespace(work=tmp_path, closed=False))
    for _ in range(2):
        system.begin_trial(setup)
        failure = system.end_trial(1).get("failure") or ""
        assert failure.startswith(
            "the job did not begin: systems.mine: the network is still cut: faults.heal: it ended with 1; "
        )
    (tmp_path / "may").touch()
    mend_left(settings(**heals), tmp_path / "logs")
    assert [(tmp_path / name).exists() for name in ("g", "logs/cut.json")] == [False, False]
    mend_left(settings(**heals), tmp_path / "logs")


def test_a_network_that_was_left_cut_is_measured_only_if_nobody_declares_how_to_mend_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left, heals = tmp_path / "cut.json", {"cut": TOUCH, "heal": ["true"]}
    needs = settings(**heals).model_copy(update={"environment": {"NAME": "${NO_SUCH_VARIABLE}"}})
    for text, system, problem in (
        (
            in_group_g(tmp_path).model_dump_json(),
            needs,
            "environment.NAME: the environment has no variable NO_SUCH_VARIABLE",
        ),
        ('["g"]', settings(**heals), "found no values of places in it"),
        ('{"group": "g"}', settings(**heals), "found no values of places in it"),
        ("{", settings(**heals), "found no values of places in it"),
    ):
        left.write_text(text)
        with pytest.raises(NotStruck) as raised:
            mend_left(system, tmp_path)
        assert str(raised.value) == (
            f"systems.mine: the network is still cut: {problem}; once it is mended by hand, remove {left}"
        )
    mend_left(settings(), tmp_path)
    assert f"{left}: this network was left cut, and no faults.heal is declared any more" in caplog.text
    assert not left.exists()


def test_a_job_that_was_killed_is_started_by_the_command_that_it_declares(tmp_path: Path) -> None:
    again = [sys.executable, "-c", "print('again')"]
    for kill in ({}, {"kill": TOUCH}):
        with started(tmp_path, start=again, **kill) as job:
            job.strike("kill")
            assert (tmp_path / "g").exists() == bool(kill)
            assert wait(job) == -9, "what the command left would end well, and commit"
            job.command.end()
            job.start()
            assert (wait(job), job.command.last_line()) == (0, "again")


def test_a_command_that_fails_or_hangs_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamgauge.bench.engines.job.life.FAULT_S", 0.3)
    (tmp_path / "start").touch()
    hangs = {"rescale": ["sleep", "60"], "start": [str(tmp_path / "start")]}
    with started(tmp_path, restart=["sh", "-c", "echo no such pod; exit 3"], **hangs) as job:
        with pytest.raises(
            NotStruck, match=r"^faults\.restart: it ended with 3; its last lines: no such pod; its log: "
        ):
            job.strike("restart")
        with pytest.raises(
            NotStruck, match=r"^faults\.rescale: it had not ended after 0\.3 s; it printed nothing; its"
        ):
            job.strike("rescale")
        assert not job.goes_on, "who knows its parallelism?"
        job.strike("kill")
        with pytest.raises(NotStruck, match=r"^faults\.start: .*/start cannot be started in .*: Permission denied$"):
            job.start()


def test_what_is_not_declared_is_not_measurable_and_names_its_key(tmp_path: Path) -> None:
    benchmark = write_bench(tmp_path).benchmark
    plain, declared = (JobSystem(settings(**faults), tmp_path) for faults in ({}, {"cut": TOUCH, "heal": TOUCH}))
    why = {fault: why_not(benchmark, plain.capabilities, fault) for fault in ("kill", "restart", "cut", "rescale")}
    assert why == {
        "kill": "",
        "restart": "its command starts what runs within it; a command that kills a worker is declared by "
        "faults.restart",
        "cut": "a broker, which is not ours to cut, stands between driver and job; commands that cut its network and "
        "mend it are declared by faults.cut and faults.heal",
        "rescale": "its command alone knows its parallelism; a command that changes it is declared by faults.rescale",
    }
    far = benchmark.model_copy(update={"replay": benchmark.replay.model_copy(update={"remote": ("h:1",)})})
    assert why_not(far, declared.capabilities, "cut") == "", "not the link to the driver is cut"


def test_commands_of_faults_are_checked_shown_and_masked() -> None:
    with pytest.raises(ValidationError, match="give cut and heal, both of them or none"):
        settings(cut=TOUCH)
    with pytest.raises(ValidationError, match=r"found \{pid\}, allowed: \{bootstrap\}, \{input\}"):
        settings(restart=["kill", "{pid}"])
    given = settings(restart=["no-such-program"], kill=["stop", "--password", "hush-12345"])
    with pytest.raises(UserError, match=r"^systems\.mine\.faults\.kill: found no 'stop' on PATH$"):
        given.check_installed()
    reached = [(one.kind, one.key) for one in given.reached() if one.key.startswith("faults")]
    assert reached == [("program", "faults.kill"), ("secret", "faults.kill"), ("program", "faults.restart")]
    assert secrets.masked(given.model_dump())["faults"]["kill"] == ["stop", "--password", secrets.MASK]
