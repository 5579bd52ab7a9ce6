"""The log of a run: each attempt at a stage in its latest state, with the cause of a failure."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from streamgauge.base.environment import environment
from streamgauge.base.errors import Outage, UserError
from streamgauge.catalog.run_log import RunLog
from streamgauge.catalog.stages import BY_NAME, needed_before


def test_the_environment_names_the_java_that_runs() -> None:
    home = os.environ.get("JAVA_HOME")
    said = subprocess.run([f"{home}/bin/java" if home else "java", "-version"], capture_output=True, text=True)
    software = environment().software
    assert f'"{software["java"]}"' in said.stderr
    assert None not in software.values()


@pytest.mark.parametrize(
    ("problem", "cause", "error"),
    [
        (UserError("f.yaml: line 3: a mistake"), "mistake", "f.yaml: line 3: a mistake"),
        (Outage("the disk is full"), "outage", "Outage: the disk is full"),
        (KeyError("lost"), "fault", "KeyError: 'lost'"),
        (OSError(errno.EIO, "Input/output error"), "fault", "OSError: [Errno 5] Input/output error"),
    ],
)
def test_a_failure_has_its_cause(tmp_path: Path, problem: Exception, cause: str, error: str) -> None:
    log = RunLog(tmp_path)

    def attempt() -> None:
        with log.stage("generate", {"experiment": "e"}) as outcome:
            outcome["events"] = 5
            raise problem

    with pytest.raises(type(problem)):
        attempt()
    found = log.latest("generate", experiment="e")
    assert found is not None
    assert (found.state, found.cause, found.error, found.outcome) == ("failed", cause, error, {"events": 5})


def test_a_full_disk_is_told_with_its_folder_and_what_to_do(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    with pytest.raises(UserError) as told, log.stage("search", {}):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/disk/cells/windows.jsonl")
    assert str(told.value) == (
        "/disk/cells: cannot be written: No space left on device; free space there (`streamgauge gc` does so among "
        "artifacts), and start again: what is done stays"
    )
    with (
        pytest.raises(UserError, match=f"^{tmp_path}: cannot be written: Disk quota exceeded"),
        log.stage("search", {}),
    ):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
    assert [(one.state, one.cause) for one in log.stages()] == [("failed", "mistake")] * 2


def test_what_a_stage_could_not_record_is_recorded_for_it(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.failed("ingest", {}, UserError("no connection"))
    with pytest.raises(SystemExit), log.stage("ingest", {}):
        raise SystemExit
    running = log.stages()[-1]
    log.failed("ingest", {}, RuntimeError("killed"), running.attempt)
    assert [(one.state, one.cause, one.error) for one in log.stages()] == [
        ("failed", "mistake", "no connection"),
        ("failed", "fault", "RuntimeError: killed"),
    ]
    assert log.stages()[-1].started_at == running.started_at


def test_a_stage_needs_those_that_make_what_it_reads() -> None:
    cell = {"experiment": "e", "workload": "w", "system": "s"}

    def before(stage: str, scope: dict[str, str]) -> list[tuple[str, dict[str, str]]]:
        return [(one.name, its) for one, its in needed_before(BY_NAME[stage], scope)]

    assert before("generate", {"experiment": "e"}) == [("ingest", {})]
    assert before("search", cell) == [("generate", {"experiment": "e"}), ("validate", {"experiment": "e"})]
    assert before("latency", cell) == [("generate", {"experiment": "e"}), ("search", cell)]
    assert before("report", {}) == before("regressions", {}) == []
    assert [stage.name for stage in BY_NAME.values() if stage.stays] == [
        "nexmark", "turns", "search", "latency", "soak", "scaling", "catchup", "recovery", "report", "regressions",
        "release",
    ]  # fmt: skip
