"""The gate in CI: published schemas, what may run with which token, and the shell parts, run as a runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

from streamgauge.base.folders import LOCKS
from tests.conftest import ROOT
from tests.gate.repositories import benchmark, commit, git, repository
from tests.gate.runner import HEAD, VENV, Runner

SCRIPTS, EXAMPLES = ROOT / "scripts" / "gate", ROOT / "examples" / "gate"
ACTIONS = (ROOT / "action.yml", ROOT / "actions" / "comment" / "action.yml")


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-actions", ACTIONS),
        ("vendor.github-workflows", (EXAMPLES / "gate.yml", EXAMPLES / "gate-comment.yml")),
        ("custom.github-workflows-require-timeout", (EXAMPLES / "gate.yml", EXAMPLES / "gate-comment.yml")),
        ("vendor.gitlab-ci", (EXAMPLES / "gitlab-ci.yml",)),
    ],
)
def test_files_are_of_their_schema(schema: str, files: tuple[Path, ...]) -> None:
    program = Path(sys.executable).with_name("check-jsonschema")
    done = subprocess.run([program, "--builtin-schema", schema, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_actionlint_finds_nothing_in_the_workflows_nor_in_how_they_use_the_actions(tmp_path: Path) -> None:
    workflows = tmp_path / ".github" / "workflows"
    workflows.mkdir(parents=True)
    git(tmp_path, "init", "--quiet")
    for file in ACTIONS:
        copy = tmp_path / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    for name in ("gate.yml", "gate-comment.yml"):  # it reads the inputs of an action that lies in the same repository
        text = re.sub(r"streamgauge/streamgauge(\S*)@main", r"./\1", (EXAMPLES / name).read_text())
        (workflows / name).write_text(text)
    programs = Path(sys.executable).parent
    command: list[str | Path] = [programs / "actionlint", "-oneline", "-shellcheck", programs / "shellcheck"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout == ""
    wrong = workflows / "gate.yml"
    wrong.write_text(wrong.read_text().replace("minutes:", "minute:"))
    assert (
        'input "minute" is not defined' in subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout
    )


def test_shellcheck_finds_nothing_in_any_script(tmp_path: Path) -> None:
    template = tmp_path / "template.sh"
    jobs = [job for job in yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text()).values() if "script" in job]
    lines = [line for job in jobs for line in (*job.get("before_script", ()), *job["script"])]
    template.write_text("\n".join(["#!/bin/bash", *lines, ""]))
    scripts = [ROOT / name for name in git(ROOT, "ls-files", "*.sh").splitlines()]
    program = Path(sys.executable).with_name("shellcheck")
    plain = "--exclude=SC2012,SC2013"  # it doubts names of jars and of folders, which are plain words
    done = subprocess.run([program, "--norc", plain, template, *scripts], capture_output=True, text=True)
    assert (done.returncode, done.stdout, len(jobs)) == (0, "", 2)


@pytest.mark.parametrize("file", ACTIONS, ids=lambda file: file.parent.name)
def test_shell_parts_are_scripts_that_get_inputs_as_variables(file: Path) -> None:
    steps = [step for step in yaml.safe_load(file.read_text())["runs"]["steps"] if "run" in step]
    assert steps
    for step in steps:
        named = re.fullmatch(r'"\$GITHUB_ACTION_PATH/([\w./-]+)"', step["run"])  # no ${{ … }} within a shell's text
        assert named is not None, step["run"]
        script = (file.parent / named[1]).resolve()
        assert os.access(script, os.X_OK)
        used = set(re.findall(r"\$\{?([A-Z_]+)", script.read_text()))
        assert set(step["env"]) - used <= {"GH_TOKEN"}, "of gh"


def test_a_stranger_s_code_meets_no_token_that_writes() -> None:
    gate, comment = (yaml.safe_load((EXAMPLES / f"{name}.yml").read_text()) for name in ("gate", "gate-comment"))
    assert gate[True] == {"pull_request": None}  # YAML reads `on` as true; pull_request_target would have a token
    assert gate["permissions"] == {"contents": "read"}
    assert comment[True]["workflow_run"]["workflows"] == [gate["name"]]
    steps = [step for job in comment["jobs"].values() for step in job["steps"]]
    used = [step["uses"].partition("@")[0] for step in steps]
    assert used == ["actions/download-artifact", "streamgauge/streamgauge/actions/comment"]
    inputs = [yaml.safe_load(file.read_text())["inputs"] for file in ACTIONS]
    assert steps[0]["with"]["pattern"] == inputs[0]["name"]["default"] == inputs[1]["name"]["default"]
    assert "name" not in steps[0]["with"], "a run that was stopped has left no artifact, and the step would fail"
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert inputs[1]["history"]["default"] == "artifact"


def test_several_gates_of_a_workflow_have_an_artifact_each() -> None:
    """The server refuses a second artifact of a name, which fails the step though the verdict is go."""
    for file, step in ((ACTIONS[0], {"with": "name"}), (ACTIONS[1], {"env": "NAME"})):
        (way, key), *_ = step.items()
        named = [one for one in yaml.safe_load(file.read_text())["runs"]["steps"] if key in one.get(way, {})]
        assert named
        assert {one[way][key] for one in named} == {"${{ inputs.name }}"}


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    own = {"OUTPUT": "gate", "DIRECTORY": "gate", "NAME": "streamgauge-gate"}
    return Runner(tmp_path, own | {"REPOSITORY": "o/r", "RUN": "https://ci/1"})


GATE = {"BENCHMARK": "b.yaml", "BASE": "main", "HEAD": HEAD, "MINUTES": ""}


@pytest.mark.parametrize(("code", "verdict"), [(0, "go"), (1, "no-go"), (2, "inconclusive")])
def test_a_verdict_is_in_the_summary_the_output_and_the_exit_code(runner: Runner, code: int, verdict: str) -> None:
    left = f"""mkdir -p gate; printf '## {verdict}\\n' > gate/comment.md
printf '{{\\n "benchmark": "b",\\n "verdict": "{verdict}",\\n "version": 1\\n}}\\n' > gate/gate.json; exit {code}"""
    runner.has("streamgauge", left)
    done = runner.run(SCRIPTS / "run.sh", **GATE)
    assert (done.returncode, done.stderr) == (code, "")
    assert runner.calls == [["gate", "b.yaml", "--base", "main", "--head", HEAD, "--output", "gate"]]
    assert runner.read("github_output") == f"verdict={verdict}\n"
    assert runner.read("github_step_summary") == f"## {verdict}\n"


def test_a_gate_without_a_verdict_leaves_none_of_an_earlier_one(runner: Runner) -> None:
    (runner.folder / "gate").mkdir()
    (runner.folder / "gate" / "gate.json").write_text('{\n "verdict": "go"\n}\n')
    (runner.folder / "gate" / "comment.md").write_text("old")
    (runner.folder / "gate" / "junit.xml").write_text("old")
    runner.has("streamgauge", "exit 3")
    assert runner.run(SCRIPTS / "run.sh", **{**GATE, "MINUTES": "7"}).returncode == 3
    assert runner.calls[0][-2:] == ["--minutes", "7"]
    assert runner.read("github_output") == "verdict=none\n"
    assert not (runner.folder / "github_step_summary").exists()
    assert list((runner.folder / "gate").iterdir()) == []


def test_a_gate_needs_a_base(runner: Runner) -> None:
    done = runner.run(SCRIPTS / "run.sh", **{**GATE, "BASE": ""})
    assert (done.returncode, done.stderr.count("\n"), runner.calls) == (3, 1, [])
    assert done.stderr.startswith("base: found nothing, allowed: ")


def server(number: str, comment: str = "") -> str:
    """Answers of gh to the two questions of the script; a comment that is sent is kept as `sent`."""
    return f"""case $* in
*pulls*) printf '{number}';;
*comments\\?*) printf '{comment}';;
*) for last; do :; done; cp "${{last#body=@}}" sent;;
esac"""


def commented(runner: Runner, text: str, does: str) -> str:
    (runner.folder / "gate").mkdir(exist_ok=True)
    (runner.folder / "gate" / "comment.md").write_text(text)
    runner.has("gh", does)
    done = runner.run(SCRIPTS / "comment.sh", HEAD=HEAD)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_comment_goes_to_the_pull_request_whose_head_was_measured(runner: Runner) -> None:
    commented(runner, "## go\n\nby @ada\n", server("17\\n18\\n"))
    asked, looked, sent = runner.calls
    assert asked[:3] == ["api", "--paginate", "repos/o/r/pulls?state=open&per_page=100"]
    assert f'"{HEAD}"' in asked[-1]
    assert looked[2] == "repos/o/r/issues/17/comments?per_page=100"
    assert sent[:5] == ["api", "--silent", "--method", "POST", "repos/o/r/issues/17/comments"]
    assert runner.read("sent") == (
        f"<!-- streamgauge-gate -->\n## go\n\nby &#64;ada\n\n\nstreamgauge-gate: [the run](https://ci/1) of {HEAD}\n"
    )


def test_a_later_comment_replaces_the_earlier_one_and_is_not_too_long(runner: Runner) -> None:
    commented(runner, "é" * 40_000, server("17\\n", "4711\\n"))
    assert runner.calls[-1][:5] == ["api", "--silent", "--method", "PATCH", "repos/o/r/issues/comments/4711"]
    assert "é" * 30_000 + "\n\nstreamgauge-gate: [the run]" in runner.read("sent")
    assert 'startswith("<!-- streamgauge-gate -->")' in runner.calls[1][-1], "of another gate, another comment stays"
    commented(runner, "x" + "é" * 40_000, server("17\\n", "4711\\n"))
    assert "x" + "é" * 29_999 + "\n\nstreamgauge-gate" in runner.read("sent"), "the cut falls inside a character"
    commented(runner, "@" * 60_000, server("17\\n", "4711\\n"))
    assert len(runner.read("sent")) < 65_536


@pytest.mark.parametrize("asked", ["pulls", "comments"])
def test_a_server_that_does_not_answer_is_no_missing_pull_request(runner: Runner, asked: str) -> None:
    (runner.folder / "gate").mkdir()
    (runner.folder / "gate" / "comment.md").write_text("## go")
    runner.has("gh", f"case $* in *{asked}?*per_page*) echo 'HTTP 502' >&2; exit 1;; *pulls*) echo 17;; esac")
    done = runner.run(SCRIPTS / "comment.sh", HEAD=HEAD)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "HTTP 502\n")
    assert "POST" not in str(runner.calls)


def test_what_is_no_comment_is_not_sent(runner: Runner) -> None:
    assert commented(runner, "text", server("")) == f"no open pull request has the head {HEAD}\n"
    file = runner.folder / "gate" / "comment.md"
    file.unlink()
    file.symlink_to("/proc/self/environ")
    for _ in range(2):  # a link, and nothing
        done = runner.run(SCRIPTS / "comment.sh", HEAD=HEAD)
        assert (done.returncode, done.stdout) == (0, "gate/comment.md: no such file; the gate has left no comment\n")
        file.unlink(missing_ok=True)
    assert len(runner.calls) == 1


def test_a_wheel_may_lie_in_a_folder_with_spaces(runner: Runner) -> None:
    place = runner.folder / "two words"
    place.mkdir()
    runner.has("python", VENV)
    temporary = {"RUNNER_TEMP": str(place), "GITHUB_PATH": str(runner.folder / "path"), "EXTRAS": "jobs,kafka"}
    done = runner.run(SCRIPTS / "install.sh", WHEEL="two words/s.whl", PYTHON="python", **temporary)
    assert (done.returncode, done.stderr) == (0, "")
    assert runner.calls[-1][-1] == f"{place}/s.whl[jobs,kafka]", "a URL would end at the first space"
    assert runner.read("path") == f"{place}/streamgauge/bin\n"


def kept(runner: Runner, record: str = '{"verdict": "go"}', **more: str) -> subprocess.CompletedProcess[str]:
    (runner.folder / "gate").mkdir(exist_ok=True)
    (runner.folder / "gate" / "gate.json").write_text(record)
    main = {"HEAD": HEAD, "HISTORY": "branch", "REF": "refs/heads/main", "DEFAULT_BRANCH": "main", "GH_TOKEN": "secret"}
    return runner.run(SCRIPTS / "history.sh", **{**main, "REMOTE": f"file://{runner.folder / 'remote'}", **more})


def test_verdicts_are_kept_on_a_branch_and_a_push_between_is_no_loss(runner: Runner) -> None:
    remote = runner.folder / "remote"
    git(runner.folder, "init", "--quiet", "--bare", "remote")
    for head in (HEAD, HEAD, "ab" * 20):  # the second one is there already
        done = kept(runner, HEAD=head)
        assert (done.returncode, done.stderr) == (0, "")
    hook = remote / "hooks" / "update"
    hook.write_text("#!/bin/sh\n[ -f pushed ] || { touch pushed; exit 1; }\n")
    hook.chmod(0o755)
    assert kept(runner, HEAD="cd" * 20).returncode == 0
    names = git(remote, "ls-tree", "--name-only", "streamgauge-gate").splitlines()
    assert names == ["ab" * 20 + ".json", HEAD + ".json", "cd" * 20 + ".json"]
    assert git(remote, "log", "--format=%s", "streamgauge-gate").splitlines() == ["cd" * 20, "ab" * 20, HEAD]
    assert git(remote, "show", f"streamgauge-gate:{HEAD}.json") == '{"verdict": "go"}'


@pytest.mark.parametrize(("refused", "code"), [(1, 0), (9, 1)])
def test_a_first_verdict_is_pushed_again_until_it_is_there(runner: Runner, refused: int, code: int) -> None:
    remote = runner.folder / "remote"
    git(runner.folder, "init", "--quiet", "--bare", "remote")
    hook = remote / "hooks" / "pre-receive"
    runner.has("sleep", ":")
    hook.write_text(f"#!/bin/sh\necho >> tries; [ $(wc -l < tries) -gt {refused} ]\n")
    hook.chmod(0o755)
    done = kept(runner)
    assert done.returncode == code
    assert ("the workflow needs permissions: {contents: write}" in done.stderr) is bool(code)
    assert bool(git(remote, "branch", "--list")) is not bool(code)


def test_a_gate_that_has_finished_begins_anew_and_one_that_was_stopped_goes_on(runner: Runner) -> None:
    output = runner.folder / "gate"
    output.mkdir()
    runner.has("streamgauge", "ls gate > seen; exit 3")
    files = {"GITHUB_STEP_SUMMARY": str(runner.folder / "summary"), "GITHUB_OUTPUT": str(runner.folder / "output")}
    for left, seen in ((("gate.json", "gate.jsonl"), ""), (("gate.jsonl",), "gate.jsonl\n")):
        for name in left:
            (output / name).write_text("{}")
        runner.run(SCRIPTS / "run.sh", BASE="main", HEAD=HEAD, BENCHMARK="b.yaml", OUTPUT="gate", **files)
        assert runner.read("seen") == seen


@pytest.mark.parametrize(
    ("record", "more", "code", "said"),
    [
        ('{"verdict": "go"}', {"HISTORY": "artifact"}, 0, ""),
        ('{"verdict": "go"}', {"HISTORY": "brnch"}, 3, "history: found 'brnch', allowed: artifact, branch"),
        ('{"verdict": "go"}', {"REF": "refs/pull/7/merge"}, 3, "history: found a workflow of refs/pull/7/merge, "
         "allowed: one of the default branch, as workflow_run starts it"),
        ('{"verdict": 1', {}, 1, "gate/gate.json: this is no verdict"),
        ("[]", {}, 1, "gate/gate.json: this is no verdict"),
    ],
)  # fmt: skip
def test_nothing_else_is_pushed(runner: Runner, record: str, more: dict[str, str], code: int, said: str) -> None:
    git(runner.folder, "init", "--quiet", "--bare", "remote")
    done = kept(runner, record, **more)
    assert (done.returncode, "".join(done.stderr.splitlines()[-1:])) == (code, said)
    assert git(runner.folder / "remote", "branch", "--list") == ""


@pytest.mark.prove
@pytest.mark.e2e
def test_the_steps_of_the_action_run_in_a_fresh_environment_from_the_wheel(runner: Runner) -> None:
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", runner.folder / "two words", ROOT], check=True)
    [wheel] = runner.folder.glob("two words/*.whl")
    # the packages that the wheel needs are those of this environment: without them pip would load two gigabytes
    temporary = {"RUNNER_TEMP": str(runner.folder), "GITHUB_PATH": str(runner.folder / "path"), "PIP_NO_DEPS": "1"}
    done = runner.run(SCRIPTS / "install.sh", WHEEL=str(wheel), PYTHON=sys.executable, **temporary)
    assert done.returncode == 0, done.stderr
    [packages] = (runner.folder / "streamgauge").glob("lib/python3*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (runner.folder / "engines").mkdir()
    (runner.folder / "engines" / "tests").symlink_to(ROOT / "tests")
    place = runner.folder / "project"
    repository(place, benchmark(), benchmark(capacity=10_000))
    git(place, "branch", "same", "main")
    git(place, "checkout", "--quiet", "same")
    commit(place, "a word", {"README.md": "word"})
    path = f"{runner.read('path').strip()}:{os.environ['PATH']}"
    paths = {"PATH": path, "PYTHONPATH": str(runner.folder / "engines"), LOCKS: str(runner.folder)}
    # equal commits are never no-go; where others load the host, the minute may not be enough for a go
    for head, code, verdicts in (("change", 1, {"no-go"}), ("same", 0, {"go", "inconclusive"})):
        git(place, "checkout", "--quiet", head)
        variables = {**GATE, **paths, "BENCHMARK": "mine.yaml", "HEAD": head}
        done = runner.run(SCRIPTS / "run.sh", at="project", **variables)
        assert done.returncode == code, done.stderr
        assert runner.read("github_output").splitlines()[-1].removeprefix("verdict=") in verdicts
    assert runner.read("github_step_summary").startswith("## ❌ Streamgauge gate: no-go\n")
