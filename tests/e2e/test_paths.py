"""The ten minutes of readers, as their pages have them: every block is typed in an empty folder with the clicks.

Those with a topic, within a second: tests/kafka/test_advise_page.py. The command kafka: test_kafka_command.py.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from streamgauge.app.services.java_server import HOME
from streamgauge.records.gate import GateCheck
from tests.conftest import is_made
from tests.e2e.processes import COMMAND, free_port, start
from tests.e2e.rest import come_up
from tests.e2e.test_tutorial import blocks, run

pytestmark = [pytest.mark.e2e, pytest.mark.prove, pytest.mark.timeout(1800)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder, but for the file that the tutorial makes."""
    (_, script), (_, make) = [block for block in blocks("tutorial") if "make_clicks" in block[1]]
    (tmp_path / "make_clicks.py").write_text(script)
    run(make, tmp_path)
    (tmp_path / "make_clicks.py").unlink()
    return tmp_path


def test_how_long_to_wait_for_a_topic(folder: Path) -> None:
    is_made("kafka", HOME / "broker")
    (kind, script), (_, ask) = blocks("kafka", "How long to wait, in ten minutes")
    assert kind == "python"
    port = str(free_port())
    (folder / "fill_topic.py").write_text(script.replace("9092", port))
    with subprocess.Popen([COMMAND, "kafka", "--port", port], cwd=folder, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline() == f"127.0.0.1:{port}\n"
            run("python fill_topic.py", folder)
            assert "advice              Wait 1.401 s." in run(ask.replace("9092", port), folder)
        finally:
            broker.terminate()


def test_a_first_night(folder: Path) -> None:
    [(_, commands)] = blocks("deploy", "A first night, in ten minutes")
    *before, last = commands.splitlines(keepends=True)
    assert last == "streamgauge ui .\n"
    run("".join(before), folder)
    options = ["--artifacts", str(folder / "artifacts"), "--port", str(free_port())]
    ui = start(["ui", str(folder), *options], folder / "ui.log")
    try:
        airflow = come_up(ui, folder / "ui.log")
        airflow.trigger("streamgauge-nightly_clicks", "night", experiments=["late20"], quick=True)
        tasks = airflow.finished("streamgauge-nightly_clicks", "night", ["", *"123456789"])
    finally:
        ui.terminate()
        ui.wait(60)
    assert tasks["", ""]["state"] == "success"
    assert {("regressions", ""), ("notify", "")} <= set(tasks)


def of_gate(folder: Path) -> str:
    return GateCheck.read(folder / "gate" / "gate.json").verdict


def of_check(folder: Path) -> str:
    return (folder / "verdict.md").read_text().splitlines()[0].removeprefix("## Release check: ")


@pytest.mark.parametrize(
    ("page", "first", "name", "verdict"),
    [("gate", "gate", "job.yaml", of_gate), ("release", "check", "versions.yaml", of_check)],
)
def test_a_first_verdict_is_no_go(
    folder: Path, page: str, first: str, name: str, verdict: Callable[[Path], str]
) -> None:
    (kind, file), (_, commands) = blocks(page, f"A first {first}, in ten minutes")
    assert kind == "yaml"
    (folder / name).write_text(file)
    run(f"export GIT_{{AUTHOR,COMMITTER}}_{{NAME,EMAIL}}=ada\n{commands}", folder, code=1)
    assert verdict(folder) == "no-go"
