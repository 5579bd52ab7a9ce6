"""Two processes on one run: the second is refused with the name of the first, until that ends in whatever way."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamgauge.app.airflow.services import ui
from streamgauge.base.errors import UserError
from streamgauge.base.folders import LOCKS
from streamgauge.base.places import place
from streamgauge.catalog.claims import CLAIM, claimed, is_claimed
from tests.command import Call, run
from tests.measure.benches import CELL, Bench, write_bench

HOLDS = """
import sys, time
from pathlib import Path
from streamgauge.catalog.claims import claimed
with claimed(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def held(directory: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDS, str(directory), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def refusal(directory: Path, shared: bool) -> str:
    with pytest.raises(UserError) as told, claimed(directory, shared=shared):
        pass
    return str(told.value)


@pytest.mark.parametrize(("how", "others"), [("alone", (True, False)), ("shared", (False,))])
def test_a_run_that_another_process_has_is_refused_until_that_is_dead(
    tmp_path: Path, how: str, others: tuple[bool, ...]
) -> None:
    directory = tmp_path / "nightly"
    with held(directory, how) as process:
        for shared in others:
            said = refusal(directory, shared)
            since = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
            holder = rf"process {process.pid} on host {re.escape(socket.gethostname())}"
            assert re.fullmatch(
                rf"run nightly: {holder} has worked on it since {since}; wait for its end, or name another run", said
            )
        with claimed(tmp_path / "other"):
            pass
        process.kill()
        process.wait()
        with claimed(directory) as ours:
            assert ours == {CLAIM: str(directory / ".claim.json")}
            assert f"process {os.getpid()} " in refusal(directory, shared=True)


def test_stages_of_one_dag_run_share_it_and_those_of_the_claim_s_own_command_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(tmp_path, "shared"), claimed(tmp_path, shared=True):
        pass
    with held(tmp_path, "alone"):
        monkeypatch.setenv(CLAIM, str(tmp_path / ".claim.json"))
        with claimed(tmp_path, shared=True):
            pass
        monkeypatch.setenv(CLAIM, str(tmp_path / "another" / ".claim.json"))
        refusal(tmp_path, shared=True)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return write_bench(tmp_path_factory.mktemp("bench"), capacity=40_000)


@pytest.mark.parametrize(
    "command",
    [
        ["search", *(part for key, name in CELL for part in (f"--{key}", name)), "--run"],
        ["run", "--run"],
        ["run", "--only", "search", "--resume"],
    ],
    ids=" ".join,
)
def test_each_command_is_refused_before_anything_starts(bench: Bench, command: list[str]) -> None:
    name, *options = command
    with held(bench.store.run("r"), "alone") as process:
        answer = run(Call([name, str(bench.file), "--artifacts", str(bench.store.root), *options, "r"]))
        answer.refused(f"run r: process {process.pid} on host ")
    assert [file.name for file in bench.store.run("r").iterdir()] == [".claim.json"]


def test_a_second_airflow_of_the_same_artifacts_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").touch()
    with held(tmp_path / "a" / "airflow" / "ui", "alone") as process:
        said = (
            rf"Airflow of {tmp_path}/a: process {process.pid} on host \S+ has worked on it since \S+; wait for its end"
        )
        with pytest.raises(UserError, match=rf"^{said}, or choose another --artifacts$"):
            ui(tmp_path, tmp_path / "a", port=1, master=None)
    assert [file.name for file in (tmp_path / "a" / "airflow" / "ui").iterdir()] == [".claim.json"]


def test_a_run_on_a_remote_store_is_claimed_by_whoever_comes_first_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LOCKS, str(tmp_path))
    store, other = place("s3://bucket/artifacts"), place("s3://bucket/others")
    (tmp_path / "elsewhere").mkdir()
    with claimed(store / "runs" / "r"):
        monkeypatch.chdir(tmp_path / "elsewhere")
        assert is_claimed(store / "runs" / "r")
        monkeypatch.delenv(CLAIM, raising=False)
        assert refusal(store / "runs" / "r", shared=True).startswith(f"run r: process {os.getpid()} on host ")
        assert not is_claimed(other / "runs" / "r")
    assert not is_claimed(store / "runs" / "r")
