"""--json prints one object with the facts of the lines that a person gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Call, run


def test_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clicks.csv").write_text("user;ts\nann;1767225600000\nbob;1767225601000\n")
    assert run(Call(["init", "clicks.csv", "--json"])).json == {
        "file": "clicks.yaml",
        "source": {"files": "clicks.csv", "separator": ";", "time": {"column": "ts", "unit": "ms"},
                   "columns": {"user": "string"}},
        "lines": 2, "read": 2, "doubts": [], "hints": [],
        "event_time": {"first": "2026-01-01T00:00:00Z", "last": "2026-01-01T00:00:01Z"},
        "event_time_ns": {"first": 1767225600 * 10**9, "last": 1767225601 * 10**9},
        "disorder": {"events": 2, "out_of_order": 0, "whole": True}, "experiments": ["as_it_came", "late20"],
    }  # fmt: skip
    assert Path("clicks.yaml").exists()


def test_datasets() -> None:
    found = run(Call(["datasets", "--json"])).json["datasets"]
    name = next(iter(found))
    one = run(Call(["datasets", name, "--json"])).json
    assert (one["name"], one["description"]) == (name, found[name])
    assert one["yaml"] == run(Call(["datasets", name])).out
