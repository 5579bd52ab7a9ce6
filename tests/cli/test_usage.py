"""Wrong options give one line, which names the option and where help is."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import Answer, Call, run


def call(*arguments: str) -> Answer:
    return run(Call(list(arguments)))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["analyze"], "analyze: missing argument 'files'; see streamgauge analyze --help"),
        (["analyze", "--tme", "t", "f.csv"], "analyze: no such option: --tme"),
        (["analyse"], "no such command 'analyse'"),
        (["--nope"], "no such option: --nope; see streamgauge --help"),
        (["results", "nope"], "results: no such command 'nope'; see streamgauge results --help"),
        (["search", "b.yaml", "--experiment"], "option '--experiment' requires an argument"),
        (
            ["generate", "f.csv", "--target", "many", "--seed", "1", "--out", "o"],
            "generate: invalid value for '--target': found 'many', allowed: a number, or source; see streamgauge",
        ),
        (["generate", "f.csv", "--target", "1_0", "--seed", "1", "--out", "o"], "found '1_0', allowed: a number"),
        (["trial", "b.yaml", "--rate", "5", "--rate", "nan"], "'--rate': found 'nan', allowed: a number"),
        (["serve", "--port", "99999"], "serve: invalid value for '--port': "),
        (["ui", "--port", "-1"], "ui: invalid value for '--port': "),
        (["calibrate", "--capacity", "inf"], "'--capacity': found 'inf', allowed: a number"),
        (
            ["generate", "f.csv", "--target", "1", "--seed", "1.5", "--out", "o"],
            "'--seed': found '1.5', allowed: a whole number",
        ),
    ],
)
def test_a_wrong_option_is_one_line(arguments: list[str], said: str) -> None:
    call(*arguments).refused(said)


#: the command `gate`, with another body
WITH_BODY = """
import sys
from typer.core import TyperCommand
from streamgauge.app import cli
from streamgauge.app.cli.verdicts import VerdictCommand

def invoke(self, ctx):
    {body}

TyperCommand.invoke = invoke
sys.argv = ["streamgauge", "gate", "b.yaml", "--base", "a", "--head", "b"]
cli.main()
"""
INTERRUPTED = """
    import os, signal
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except KeyboardInterrupt:
        raise ImportError("a module that is half there")
"""
WITHOUT_JOBS = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in ("sqlalchemy", "duckdb", "scipy", "tenacity", "pyspark"):
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Absent())
from streamgauge.app.cli import main
main()
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("results list", 2), ("calibrate --capacity 9000", 2), ("advise events.csv --time t --unit s --event", 2),
     ("release-check b.yaml --baseline a.yaml --candidate b.yaml", 3)],
)  # fmt: skip
def test_a_command_whose_extra_is_not_installed_names_it(tmp_path: Path, arguments: str, code: int) -> None:
    (tmp_path / "events.csv").write_text("t\n1\n2\n")
    asked = [sys.executable, "-c", WITHOUT_JOBS, *arguments.split()]
    ended = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "is not installed; install the wheel with its extra `jobs`" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (ended.returncode, ended.stdout) == (code, "")


def test_a_folder_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("time,a\n2026-01-01,2\n")
    call("kafka", "--directory", str(file)).refused(str(file))
    call("results", "import", str(file), "--as", "otava", "--artifacts", str(file / "x")).refused(str(file))


@pytest.mark.parametrize(("body", "code"), [("raise OSError(28, 'full')", 3), (INTERRUPTED, 130)])
def test_what_keeps_a_verdict_from_being_made_is_one_line(tmp_path: Path, body: str, code: int) -> None:
    """A full disk, and a signal in the middle of an import, which then fails: as for any other command."""
    program = WITH_BODY.format(body=body)
    done = subprocess.run([sys.executable, "-c", program, "gate"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr, done.stderr.count("\n")) == (code, False, 1), done.stderr


def test_a_wrong_option_of_a_command_whose_exit_codes_are_verdicts_is_no_verdict() -> None:
    answer = call("release-check", "b.yaml", "--baseline", "a")
    answer.refused("release-check: missing option '--candidate'")
    assert answer.code == 3


def generate(tmp_path: Path, *more: str) -> Answer:
    (tmp_path / "f.csv").write_text("t,v\n1,a\n3,b\n2,c\nx,d\n")
    options = ["--time", "t", "--unit", "s", "--target", "20", "--seed", "1", "--out", str(tmp_path / "o")]
    return call("generate", str(tmp_path / "f.csv"), *options, *more)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--separator", "::"], "--separator: found '::', allowed: one ASCII character"),
        (["--unit", "sec"], "--unit: found 'sec', allowed: 'ps', 'ns', 'us', 'ms' or 's'"),
        (["--order", "random"], "--order: found 'random', allowed: 'file', 'arrival' or 'event_time'"),
        (["--order", "arrival"], "--order: arrival needs an arrival column"),
        (["--max-bad-fraction", "2"], "--max-bad-fraction: found 2.0, allowed: at most 1"),
        (["--delay", "odd"], "--delay: found 'odd'"),
        (["--min", "3s"], "--min: found 3s, which is above max 2s"),
        (["--seed", "-1"], "--seed: found -1, allowed: at least 0"),
        (["--on-infeasible", "maybe"], "--on-infeasible: found 'maybe', allowed: 'error' or 'closest'"),
        (["--master", ""], "master: found '', allowed: local[2]"),
        ([], "1 of 4 lines are bad, allowed: 0.01 of them; check --separator (',') and --time, or raise --max-bad-"),
        (["--max-bad-fraction", "1", "--target", "100"], "or --on-infeasible closest"),
    ],
)
def test_options_are_named_where_there_is_no_file_of_keys(tmp_path: Path, more: list[str], said: str) -> None:
    answer = generate(tmp_path, *more)
    answer.refused(said)
    assert "source." not in answer.err.replace("source.csv", "")
    assert [path.name for path in tmp_path.iterdir()] == ["f.csv"]


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_a_source(tmp_path: Path, packed: bool) -> None:
    text = b"t,v\n1,a\n3,b\n2,c\n"
    command = [
        str(Path(sys.executable).with_name("streamgauge")),
        "analyze",
        "-",
        "--time",
        "t",
        "--unit",
        "s",
        "--json",
    ]
    done = subprocess.run(
        command, input=gzip.compress(text) if packed else text, capture_output=True, check=True, cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert (found["events"], found["out_of_order"]) == (3, 1)
    assert list(tmp_path.iterdir()) == []


def test_a_quiet_command_prints_its_result_alone(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("t\n1\n2\n")
    call = ["analyze", str(tmp_path / "x.csv"), "--time", "t", "--unit", "s"]
    loud, quiet, again = run(Call(call)), run(Call(["--quiet", *call])), run(Call(call))
    assert loud.err == again.err == "", "of what takes less than 15 s"
    assert (quiet.out, quiet.err) == (loud.out, "")
