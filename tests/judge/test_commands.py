"""compare and changes as a user meets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Call, run

BASE = ["100", "101.5", "# a remark", "", "99", "1e2", " 100.5 "]


def file(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("\n".join(lines) + "\n")
    return str(folder / name)


def test_compare_prints_ratio_interval_and_verdict(tmp_path: Path) -> None:
    a = file(tmp_path, "a", BASE)
    b = file(tmp_path, "b", ["110", "111", "112", "109", "110.5"])
    call = ["compare", "--baseline", a, "--candidate", b]
    found = run(Call([*call, "--json"])).json
    assert found["verdict"] == "worse"
    assert found["ratio"] == pytest.approx(1.1, abs=0.01)
    assert found["interval"][0] < 1.1 < found["interval"][1]
    assert {"noise_floor", "detectable_effect", "n_baseline", "n_candidate"} <= set(found)
    assert run(Call([*call, "--higher-is-better", "--json"])).json["verdict"] == "better"
    assert "noise floor" in run(Call(call)).out


@pytest.mark.parametrize(("values", "code"), [(["110", "111", "112", "109", "110.5"], 1), (BASE, 0), (["100"], 4)])
def test_a_pipeline_that_asks_is_told_by_the_exit_code(tmp_path: Path, values: list[str], code: int) -> None:
    a, b = file(tmp_path, "a", BASE), file(tmp_path, "b", values)
    call = ["compare", "--baseline", a, "--candidate", b, "--effect", "0.05"]
    assert run(Call(call)).code == 0, "nobody asked"
    assert run(Call([*call, "--exit-code"])).code == code
    assert run(Call([*call, "--exit-code", "--json"])).code == code


def test_a_change_for_the_worse_ends_a_pipeline_that_asks(tmp_path: Path) -> None:
    rows = [f"2026-02-{day:02},{(100 if day < 20 else 112) + day % 3}" for day in range(1, 29)]
    call = ["changes", file(tmp_path, "h.csv", ["time,value", *rows]), "--exit-code"]
    assert run(Call(call)).code == 1
    assert run(Call([*call, "--higher-is-better"])).code == 0
    assert run(Call([*call[:1], file(tmp_path, "s.csv", ["time,value", *rows[:3]]), "--exit-code"])).code == 4


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "found no numbers"), (["1", "x"], "bad:2: found 'x', allowed: a positive number"),
        (["1", "nan"], "bad:2: found 'nan'"), (["0"], "bad:1: found '0'"), (["1", "2", "-3"], "bad:3: found '-3'"),
    ],
)  # fmt: skip
def test_a_bad_sample_is_one_line_with_its_place(tmp_path: Path, lines: list[str], said: str) -> None:
    a, bad = file(tmp_path, "a", BASE), file(tmp_path, "bad", lines)
    run(Call(["compare", "--baseline", a, "--candidate", bad])).refused(said)


def test_an_unknown_baseline_is_one_line(tmp_path: Path) -> None:
    a = file(tmp_path, "a", BASE)
    run(Call(["compare", "--baseline", str(tmp_path / "no"), "--candidate", a])).refused("no: no such file")


def test_changes_prints_points_and_gaps(tmp_path: Path) -> None:
    days = [day for day in range(1, 29) if day not in (5, 6)]
    rows = [f"2026-02-{day:02},{(100 if day < 20 else 112) + day % 3}" for day in days]
    rows[days.index(9)] = "2026-02-09,"
    found = run(Call(["changes", file(tmp_path, "h.csv", ["time,value", *rows]), "--json"])).json
    assert [(c["time"], c["index"]) for c in found["changes"]] == [("2026-02-20", days.index(20) - 1)]
    assert found["changes"][0]["magnitude"] == pytest.approx(0.12, abs=0.02)
    assert 0.99 < found["changes"][0]["confidence"] <= 1
    assert found["gaps"] == [
        {"after": "2026-02-04", "before": "2026-02-07", "days": 3.0},
        {"after": "2026-02-08", "before": "2026-02-10", "days": 2.0},
    ]
    assert "1 change point" in run(Call(["changes", str(tmp_path / "h.csv")])).out


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["time,value"], "found no values"), (["1,2,3"], "bad.csv:1: found 3 fields"),
        (["1,5", "2,nan"], "bad.csv:2: found 'nan'"), (["1,5", "2,0"], "bad.csv:2: found '0'"),
        (["2,5", "1,5"], "bad.csv:2: time: found '1' after '2', allowed: no earlier time"),
        (["2026-01-01,5", "soon,5"], "bad.csv:2: time: found 'soon'"),
        (["2026-01-01,5", "17,5"], "bad.csv:2: time: found '17', allowed: all dates, or all numbers"),
    ],
)  # fmt: skip
def test_a_bad_history_is_one_line_with_its_place(tmp_path: Path, rows: list[str], said: str) -> None:
    run(Call(["changes", file(tmp_path, "bad.csv", rows), "--json"])).refused(said)


def test_a_short_history_has_no_changes_and_says_why(tmp_path: Path) -> None:
    found = run(Call(["changes", file(tmp_path, "h.csv", ["1,5", "2,6"]), "--json"])).json
    assert (found["changes"], found["reason"]) == ([], "2 values: at least 8 are needed to detect a change")
