"""The command advise, on real flights and on lines written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command import Call, run
from tests.conftest import ROOT
from tests.told import known

FLIGHTS = str(ROOT / "configs" / "data" / "flights_2013_01.csv.gz")
READ = ["--time", "sched", "--format", "%Y-%m-%d %H:%M:%S"]
HOUR_NS = 3600 * 10**9


def advice(*options: str) -> dict[str, Any]:
    answer = run(Call(["advise", *options, "--json"]))
    assert answer.code == 0, answer.err
    made: dict[str, Any] = json.loads(answer.out)
    return made


def test_a_promise_is_kept_on_flights_that_the_rule_has_not_seen() -> None:
    made = advice(FLIGHTS, *READ, "--window", "1h", "--lost", "1%", "--delay", "6600s", "--delay", "6601s")
    assert made["events"] == 26_475
    assert made["reason"] is None
    best = made["advised"]
    assert (best["promised"], best["tests"], best["held"]) == (0.01, 42, 39)
    assert best["delay_ns"] == 11_700_001_000_000
    assert best["realised_p50"] < 0.01 < best["realised_max"] < 0.02
    naive, *others = made["rules"]
    assert naive["held"] < 0.7 * naive["tests"]  # enough for the past is too little for what comes
    assert all(one["held"] >= naive["held"] for one in others)
    curve = {one["delay_ns"]: one for one in made["curve"]}
    assert curve[0]["lost"] == 5455  # DuckDB: see test_the_curve_is_that_of_sql
    assert [*curve] == sorted(curve)
    assert {6_600 * 10**9, 6_601 * 10**9, best["delay_ns"]} <= {*curve}


def test_the_curve_is_that_of_sql() -> None:
    import duckdb

    made = advice(FLIGHTS, *READ, "--window", "2h", "--slide", "1h", "--delay", "90m")
    judged = duckdb.sql(f"""
        with events as (
            select epoch_us(sched::timestamp) as t, row_number() over () as n
            from read_csv('{FLIGHTS}', header = true, all_varchar = true, parallel = false)
            where try_cast(sched as timestamp) is not null),
        reached as (select t, max(t) over (order by n rows between unbounded preceding and 1 preceding) as most
            from events),
        judged as (select most - 5400000000 as mark, (t // 3600000000 + 1) * 3600000000 as first from reached)
        select count(*) filter (first + 3600000000 <= mark), count(*) filter (first <= mark) from judged
    """)
    ((lost, in_part),) = known(judged).fetchall()
    (row,) = [one for one in made["curve"] if one["delay_ns"] == 90 * 60 * 10**9]
    assert (row["lost"], row["lost_in_part"]) == (lost, in_part)
    assert made["advised"] is None
    assert made["reason"] == "nothing is promised: name the share that may be lost"


def lines(folder: Path, *rows: str) -> str:
    file = folder / "events.csv"
    file.write_text("\n".join(["ts,key,n", *rows]) + "\n")
    return str(file)


@pytest.fixture
def few(tmp_path: Path) -> str:
    return lines(tmp_path, "1000,a,1", "61000,b,2", "2000,a,3", "200000,a,4")


def test_a_short_stream_gets_the_trade_and_no_advice(few: str) -> None:
    made = advice(few, "--time", "ts", "--unit", "ms", "--window", "1m", "--value", "n", "--lost", "1%")
    assert made["advised"] is None
    assert made["reason"] == (
        "the stream is too short to test a promise of 1 %: found 4 events, allowed: from 12,500 on, so that 25 blocks "
        "may lose 5 each"
    )
    assert made["curve"][0] == {
        "delay_ns": 0, "lost": 1, "lost_in_part": 1, "windows": 3, "windows_wrong": 1,
        "count_error": {"median": 0.5, "worst": 0.5}, "value_error": {"median": 0.75, "worst": 0.75},
        "open_windows": 1, "revised": None, "wait_ns": {"p50": 10**9, "p99": 80 * 10**9}, "wait_arrival_ns": None,
    }  # fmt: skip
    assert [(one["delay_ns"], one["lost"]) for one in made["curve"]] == [(0, 1), (1_001_000_000, 0)]


def test_columns_are_named_by_place_where_there_is_no_header(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("1000,a,1\n61000,b,2\n2000,a,3\n")
    made = advice(
        str(file), "--time", "0", "--unit", "ms", "--no-header", "--window", "1m", "--key", "1", "--value", "2"
    )
    assert (made["question"]["key"], made["question"]["value"]) == ("column_1", "column_2")
    assert (made["curve"][0]["windows"], made["curve"][0]["windows_wrong"]) == (2, 1)
    assert made["curve"][0]["value_error"] == {"median": 0.75, "worst": 0.75}


def test_sessions_are_simulated_at_each_delay() -> None:
    made = advice(FLIGHTS, *READ, "--session", "10m", "--key", "carrier", "--lost", "5%", "--delay", "90m")
    whole = [one for one in made["curve"] if one["lost"] == 0]
    assert made["curve"][0]["lost"] > 1000
    assert whole
    assert whole[-1]["windows_wrong"] == 0
    assert 90 * 60 * 10**9 in {one["delay_ns"] for one in made["curve"]}
    assert all(one["tests"] == 80 or one["delay_ns"] > HOUR_NS for one in made["rules"])
    assert made["advised"]["held"] >= 0.9 * made["advised"]["tests"]


def test_sessions_that_stay_wrong_are_promised() -> None:
    made = advice(FLIGHTS, *READ, "--session", "10m", "--key", "carrier", "--windows-wrong", "5%", "--delay", "90m")
    best = made["advised"]
    (row,) = [one for one in made["curve"] if one["delay_ns"] == best["delay_ns"]]
    assert row["windows_wrong"] <= 0.05 * row["windows"]
    assert best["held"] >= 0.9 * best["tests"]
    assert all(one["realised_p50"] <= one["realised_max"] <= 1 for one in made["rules"])


def test_each_part_gets_an_advice_or_the_reason_why_not(tmp_path: Path) -> None:
    rows = [f"{1000 * (n - (n % 7) * (n % 3))},{'ab'[n % 2]},{n}" for n in range(40_000)]
    rows += ["1,c,0"]
    made = advice(lines(tmp_path, *rows), "--time", "ts", "--unit", "ms", "--event", "--lost", "1%", "--by", "key")
    parts = {one["part"]: one for one in made["by_part"]}
    assert {name: one["events"] for name, one in parts.items()} == {"a": 20_000, "b": 20_000, "c": 1}
    for part in "ab":
        assert 0 < parts[part]["enough_ns"] <= 12 * 10**9
        assert parts[part]["advised"]["delay_ns"] <= parts[part]["enough_ns"]
    assert parts["c"]["advised"] is None
    assert parts["c"]["reason"].startswith("the stream is too short to test a promise of 1 %: found 1 event,")
    text = run(Call(["advise", str(tmp_path / "events.csv"), "--time", "ts", "--unit", "ms", "--event", "--by", "key"]))
    assert "If each of 3 parts has a watermark of its own, 0 get an advice." in text.out.splitlines()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--window", "1m", "--key", "kye"], "--key: no column 'kye'; found 3: 'ts', 'key', 'n'"),
        (["--window", "1m", "--value", "m"], "--value: no column 'm'; found 3: 'ts', 'key', 'n'"),
        (["--event", "--by", "dev"], "--by: no column 'dev'; found 3: 'ts', 'key', 'n'"),
        (["--window", "1m", "--key", "9"], "--key: no column 9; found 3: 'ts', 'key', 'n'"),
        (["--join", "1s", "--left", "a=b", "--key", "key"], "--left: no column 'a'; found 3: 'ts', 'key', 'n'"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there_is_named_by_its_option(few: str, options: list[str], line: str) -> None:
    run(Call(["advise", few, "--time", "ts", "--unit", "ms", *options])).refused(f"{few}: {line}")


def test_a_path_that_no_object_has_is_no_key(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"at": {"ms": 1000}, "user": "a"}\n{"at": {"ms": 2000}, "user": "b"}\n')
    asked = [str(file), "--time", "at.ms", "--unit", "ms", "--window", "1m"]
    run(Call(["advise", *asked, "--key", "usr"])).refused("--key: found no value of usr in any event")
    assert advice(*asked, "--key", "user")["curve"][0]["windows"] == 2


def test_the_line_names_the_column_s_own_name_and_an_event_ahead_is_to_be_mended_first(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    ahead = [f'{{"at": {{"s": {n - n % 5}}}}}' for n in range(1_700_000_000, 1_700_008_000)]
    ahead[2000] = '{"at": {"s": 1700100000}}'
    file.write_text("\n".join(ahead) + "\n")
    answer = run(
        Call(["advise", str(file), "--time", "at.s", "--unit", "s", "--event", "--lost", "2%", "--delay", "5s"])
    )
    assert 'Spark               .withWatermark("s", "5 seconds")' in answer.out.splitlines()
    assert "Mend first what the hints name." in answer.out


def test_pairs_of_a_join_are_counted_as_sql_counts_them(tmp_path: Path) -> None:
    import duckdb

    rows = [(1000 * (n * 37 % 101), "ab"[n % 2], n % 3) for n in range(120)]
    file = lines(tmp_path, *(f"{ms},{half},{key}" for ms, half, key in rows))
    made = advice(
        file, "--time", "ts", "--unit", "ms", "--join", "5s", "--left", "key=a", "--key", "n", "--delay", "20s"
    )
    (row,) = [one for one in made["curve"] if one["delay_ns"] == 20 * 10**9]
    joined = f"""
        with events as (select *, row_number() over () as place from read_csv('{file}', parallel = false)),
        judged as (select *, coalesce(max(ts)
            over (order by place rows between unbounded preceding and 1 preceding), ts)
            - 20000 <= ts as kept from events)
        select count(*), count(*) filter (l.kept and r.kept), (select count(*) filter (not kept) from judged)
        from judged l join judged r on l.n = r.n and l.key = 'a' and r.key <> 'a' and abs(l.ts - r.ts) <= 5000
    """
    ((pairs, kept, lost),) = known(duckdb.sql(joined)).fetchall()
    assert (row["windows"], row["windows_wrong"], row["lost"]) == (pairs, pairs - kept, lost)
    assert lost


def test_the_text_names_the_question_and_the_reason(few: str) -> None:
    answer = run(Call(["advise", few, "--time", "ts", "--unit", "ms", "--window", "1m", "--key", "key"]))
    assert answer.code == 0
    assert "answers             windows of 60 s, by key" in answer.out
    assert "advice              No delay is advised: nothing is promised" in answer.out


def test_lines_that_are_left_out_are_counted(tmp_path: Path) -> None:
    file = lines(tmp_path, *(f"{1000 * n},a,1" for n in range(150)), "soon,a,1")
    assert run(Call(["advise", file, "--time", "ts", "--unit", "ms", "--event"])).err == "1 bad line left out\n"


KINDS = "allowed: one of --window, --session, --join, --event"


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], f"found nothing that says what an answer is made of, {KINDS}"),
        (["--window", "1m", "--event"], f"found --window and --event, {KINDS}"),
        (
            ["--window", "1x"],
            "--window: found '1x', allowed: a number and one of ps ns us ms s m min h d, such as 2s or 1.5h",
        ),
        (["--window", "0s"], "--window 0s: allowed: a length of time above 0, in whole nanoseconds"),
        (["--window", "1m", "--slide", "7s"], "--slide 7s: allowed: a whole part of --window 1m"),
        (["--event", "--slide", "7s"], "--slide: found with --event, allowed: with --window"),
        (["--event", "--lost", "2"], None),
        (["--event", "--lost", "0%"], "--lost: found '0%', allowed: a percent above 0 and below 100, such as 0.1%"),
        (["--event", "--lost", "x"], "--lost: found 'x', allowed: a percent above 0 and below 100, such as 0.1%"),
        (["--event", "--windows-wrong", "1"], "--windows-wrong: found with --event, allowed: with --window, --session"),
        (["--window", "1m", "--value", "key"], None),
        (
            ["--join", "5m", "--key", "key", "--left", "key=a", "--windows-wrong", "1%"],
            "--windows-wrong: found with --join, allowed: with --window, --session",
        ),
        (["--join", "5m", "--key", "key"], "--left: this option is missing; --join wants it"),
        (["--window", "1m", "--delay", "-5s"], "--delay: found -5s, allowed: 0s to 1000000000000000000 ns"),
        (["--event", "--delay", "99999999d"], "--delay: found 99999999d, allowed: 0s to 1000000000000000000 ns"),
    ],
)  # fmt: skip
def test_options_that_make_no_question_are_one_line(few: str, options: list[str], line: str | None) -> None:
    answer = run(Call(["advise", few, "--time", "ts", "--unit", "ms", *options]))
    if line is not None:
        assert answer.code == 2
        assert answer.err.strip().splitlines()[-1] == f"streamgauge: {line}"
    else:
        assert len(answer.err.strip().splitlines()) <= 1
        assert "Traceback" not in answer.err
