"""The command nexmark as a user meets it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from streamgauge.base.jsonl import read_jsonl
from tests.cli.test_cli import call
from tests.e2e.processes import COMMAND

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def test_one_json_object_with_a_row_per_query_and_mode_and_equal_hashes_in_order(tmp_path: Path) -> None:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    places = ["--run", "mine", "--artifacts", str(tmp_path)]
    command = ["--events", "600", "--queries", "q1,q9,q18", "--mode", "both", "--batches", "2", "--json", *places]
    answer = subprocess.run([COMMAND, "nexmark", *command], capture_output=True, text=True, timeout=500, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("\n") == 1
    rows = json.loads(answer.stdout)["rows"]
    assert [(row["query"], row["mode"], row["status"]) for row in rows] == [
        (query, mode, "correct") for mode in ("batch", "streaming") for query in ("q1", "q9", "q18")
    ]
    assert [row["hash"] for row in rows[:3]] == [row["hash"] for row in rows[3:]]
    assert all(row["rows"] > 0 and row["seconds"] > 0 for row in rows)
    assert all(row["late_drops_expected"] == row["late_drops_reported"] == 0 for row in rows)
    assert read_jsonl(tmp_path / "runs" / "mine" / "nexmark.jsonl") == rows
    matrix = json.loads((tmp_path / "runs" / "mine" / "capabilities.json").read_text())
    assert {cell["status"] for cell in matrix["features"]} == {"works"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--queries", "q5,q24"], "--queries: found 'q24', allowed: all, or some of q0,q1,"),
        (["--system", "storm"], "--system: found 'storm', allowed: spark, "),
        (["--system", "flink", "--mode", "batch"], "--mode: found batch, allowed for flink: streaming"),
        (["--run", "nope"], "run: found 'nope', allowed: an existing run ("),
        (["--run", "../../x"], "run: found '../../x', allowed: an existing run ("),
    ],
)
def test_a_wrong_name_is_one_line(arguments: list[str], said: str) -> None:
    answer = call("nexmark", *arguments)
    answer.refused(said)
    assert answer.code == 2
