"""The template of GitLab: its jobs' scripts, run as a runner runs them."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest
import yaml

from tests.conftest import ROOT
from tests.gate.runner import HEAD, VENV, Runner

TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "gate" / "gitlab-ci.yml").read_text())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


class Notes(BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    posted: ClassVar[list[tuple[str, str | None, str]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.posted.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)["body"][0]))
        self.send_response(201)
        self.end_headers()


def test_the_template_of_gitlab_posts_a_note_that_calls_nobody_and_commands_nothing(runner: Runner) -> None:
    job = TEMPLATE["streamgauge-gate-note"]
    assert job["rules"][0]["if"].endswith("&& $GATE_TOKEN"), "nothing is sent where nobody asked for it"
    assert (job["variables"]["GIT_STRATEGY"], job["needs"]) == ("none", ["streamgauge-gate"])
    script = "\n".join(job["script"])
    comment = runner.folder / "gate" / "comment.md"
    comment.parent.mkdir()
    with HTTPServer(("127.0.0.1", 0), Notes) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        variables = {
            "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4", "CI_PROJECT_ID": "a fork's",
            "CI_MERGE_REQUEST_PROJECT_ID": "7", "CI_MERGE_REQUEST_IID": "9", "CI_COMMIT_SHA": HEAD,
            "GATE_TOKEN": "secret",
        }  # fmt: skip
        comment.symlink_to("/proc/self/environ")
        assert runner.run("bash", "-ec", script, **variables).stdout == f"the gate has left no comment of {HEAD}\n"
        comment.unlink()
        comment.write_text("## go\nHead `ab12ab12ab12`\n")  # of another pipeline, whose folder this job has
        assert runner.run("bash", "-ec", script, **variables).stdout == f"the gate has left no comment of {HEAD}\n"
        comment.write_text(f"## go & more\n@ada a/b `{HEAD[:12]}`\n  /merge\n")
        done = runner.run("bash", "-ec", script, **variables)
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    [posted] = Notes.posted
    path = "/api/v4/projects/7/merge_requests/9/notes"
    assert posted == (path, "secret", f"## go & more\n&#64;ada a/b `{HEAD[:12]}`\n  &#47;merge\n")


def test_the_template_of_gitlab_installs_nothing_that_nobody_named(runner: Runner) -> None:
    script = "\n".join(TEMPLATE["streamgauge-gate"]["before_script"])
    runner.has("python3", VENV)
    builds = {**TEMPLATE["variables"], "CI_BUILDS_DIR": str(runner.folder)}
    done = runner.run("bash", "-ec", script, **builds)
    assert (done.returncode, runner.calls) == (1, [])
    assert "STREAMGAUGE: found nothing, allowed: what pip installs, such as " in done.stderr
    assert runner.run("bash", "-ec", script, **{**builds, "STREAMGAUGE": "a b.whl[jobs]"}).returncode == 0
    assert runner.calls[-1] == ["install", "--quiet", "a b.whl[jobs]"]


def test_the_template_of_gitlab_judges_the_source_branch_against_the_base_of_the_difference(runner: Runner) -> None:
    script = "\n".join(TEMPLATE["streamgauge-gate"]["script"])
    (runner.folder / "streamgauge").symlink_to(runner.folder)  # its bin is that of the stand-ins
    runner.has("streamgauge", "exit 1")
    variables = {"CI_BUILDS_DIR": str(runner.folder), "CI_MERGE_REQUEST_DIFF_BASE_SHA": "ba5e", "CI_COMMIT_SHA": HEAD}
    for more, head in (({}, HEAD), ({"CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "50ce"}, "50ce")):
        assert runner.run("bash", "-ec", script, **TEMPLATE["variables"], **variables, **more).returncode == 1
        assert runner.calls[-1] == [
            "gate", "benchmarks/job.yaml", "--base", "ba5e", "--head", head, "--minutes", "10", "--output", "gate",
        ]  # fmt: skip
