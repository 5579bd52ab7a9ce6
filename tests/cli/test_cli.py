"""The command without Spark: plans, schema, and everything wrong that is told before anything starts."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streamgauge.app.cli import planning
from streamgauge.catalog.artifacts import Store
from streamgauge.config import datasets, load
from streamgauge.streams.keys import events_key, stream_key
from tests.command import Answer, Call, run
from tests.conftest import ROOT
from tests.spark.ingesting import written

FLIGHTS = ROOT / "configs" / "flights.yaml"


def call(*arguments: str | Path) -> Answer:
    return run(Call([str(argument) for argument in arguments]))


# -- check, schema


def test_check_prints_the_plan_and_what_is_built(tmp_path: Path) -> None:
    benchmark = load(FLIGHTS)
    store = Store(tmp_path)
    with store.building("events", events_key(store, benchmark)):
        pass
    late20 = next(e for e in benchmark.experiments if e.name == "late20")
    plan = call("check", FLIGHTS, "--artifacts", tmp_path, "--json").json
    assert plan["benchmark"] == "flights"
    assert plan["sources"] == [
        {"file": benchmark.source.files[0], "size": Path(benchmark.source.files[0]).stat().st_size}
    ]
    assert (plan["events"]["built"], plan["profile"]["built"]) == (True, False)
    assert plan["events"]["key"] == events_key(store, benchmark)
    assert [(e["name"], e["target_percent"], e["built"]) for e in plan["experiments"]] == [
        (e.name, e.target_percent, False) for e in benchmark.experiments
    ]
    assert stream_key(store, benchmark, late20) in [e["key"] for e in plan["experiments"]]
    assert plan["cells"] == [cell.name for cell in benchmark.all_cells()]

    told = call("check", FLIGHTS, "--artifacts", tmp_path)
    assert told.code == 0
    assert all(word in told.out for word in ("flights_2013_01.csv.gz", "late20", "20 %", "events  built", "to build"))


def test_check_reads_no_large_file_that_no_run_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, store = benchmark(tmp_path), Store(tmp_path / "artifacts")
    monkeypatch.setattr(planning, "HASHED_AT_ONCE", 3)
    plan = call("check", file, "--artifacts", store.root, "--json").json
    unknown = {"key": None, "built": False}
    assert (plan["events"], plan["profile"]) == (unknown, unknown)
    assert plan["experiments"] == [{"name": "e", "target_percent": 20.0, **unknown}]

    with store.building("events", events_key(store, load(file))):  # as a run does
        pass
    assert call("check", file, "--artifacts", store.root, "--json").json["events"]["built"]


def test_check_starts_no_spark() -> None:
    program = (
        "import sys; from streamgauge.app import cli; sys.argv = ['streamgauge', 'check', sys.argv[1]]\n"
        "try: cli.main()\n"
        "finally: assert not {'pyspark', 'airflow', 'great_expectations'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program, str(FLIGHTS)], check=True, capture_output=True, timeout=60)


def test_schema_is_json_that_names_the_keys() -> None:
    schema = call("schema")
    assert schema.code == 0
    found = json.loads(schema.out)
    assert {"name", "source", "experiments", "workloads", "systems"} <= set(found["properties"])
    assert found["required"] == ["name", "source", "experiments"]


def test_datasets_are_listed() -> None:
    told = dict(line.split(": ", 1) for line in call("datasets").out.splitlines())
    assert tuple(told) == datasets.names()
    assert "picoseconds" in told["debs2013"]


@pytest.mark.parametrize("name", datasets.names())
def test_a_data_set_is_printed_as_a_benchmark_file_takes_it(tmp_path: Path, name: str) -> None:
    raw = {"name": "b", "experiments": [{"name": "e", "target_percent": 20}]}
    file = written(tmp_path / "b.yaml", yaml.safe_dump(raw) + call("datasets", name).out)
    assert load(file).source == datasets.source(name, str(tmp_path / "FILE"))


def test_an_unknown_data_set() -> None:
    call("datasets", "debs2099").refused("data set: found 'debs2099', allowed: nyc_tlc_yellow_csv, ")


def test_the_question_that_demo_ends_with_has_an_answer() -> None:
    program, *words = shlex.split(planning.question())
    answer = run(Call(words))
    assert (program, answer.code) == ("streamgauge", 0)
    assert "\nadvice              Wait 11,700.001 s (3.25 h). " in answer.out


# -- a benchmark file that is wrong


def benchmark(tmp_path: Path, **more: object) -> Path:
    written(tmp_path / "f.csv", "t\n1\n")
    raw = {
        "name": "b",
        "source": {"files": "f.csv", "time": {"column": "t", "unit": "s"}},
        "experiments": [{"name": "e", "target_percent": 20}],
        **more,
    }
    return written(tmp_path / "b.yaml", yaml.safe_dump(raw))


def test_no_such_benchmark_file(tmp_path: Path) -> None:
    call("check", tmp_path / "none.yaml").refused("none.yaml: no such file; name a benchmark file")


def test_duplicate_experiment_names(tmp_path: Path) -> None:
    twice = [{"name": "e", "target_percent": 20}, {"name": "e", "target_percent": 30}]
    call("check", benchmark(tmp_path, experiments=twice)).refused("experiments: found the name 'e' twice")


def test_an_unknown_key(tmp_path: Path) -> None:
    call("check", benchmark(tmp_path, sead=3)).refused("b.yaml:5:1: sead: unknown key; allowed here: advice, catchup,")


def test_a_schedule_that_is_none(tmp_path: Path) -> None:
    call("check", benchmark(tmp_path, schedule="every night")).refused(
        "schedule: found 'every night', allowed: a cron expression such as 0 3 * * * or @daily"
    )


def test_a_source_that_is_missing(tmp_path: Path) -> None:
    file = benchmark(tmp_path)
    (tmp_path / "f.csv").unlink()
    call("check", file).refused("f.csv: no such source file; check source.files")


def test_a_suite_of_expectations_that_is_missing(tmp_path: Path) -> None:
    source = {"files": "f.csv", "time": {"column": "t", "unit": "s"}, "expectations": ["ours.json"]}
    call("check", benchmark(tmp_path, source=source)).refused("ours.json: no such file; check source.expectations")


def test_a_suite_of_expectations_that_is_no_text(tmp_path: Path) -> None:
    (suite := tmp_path / "ours.json").write_bytes(b"\xff\xfe{")
    (tmp_path / "f.csv").write_text("t\n1\n")
    source = {"files": "f.csv", "time": {"column": "t", "unit": "s"}, "expectations": ["ours.json"]}
    call("check", benchmark(tmp_path, source=source)).refused(f"{suite}: cannot be read: not UTF-8 text")


def test_an_unknown_delay_distribution(tmp_path: Path) -> None:
    experiments = [{"name": "e", "target_percent": 20, "delay": {"distribution": "gauss"}}]
    call("check", benchmark(tmp_path, experiments=experiments)).refused(
        "experiment e: delay.distribution: found 'gauss', allowed: uniform, constant"
    )


def test_a_column_that_the_source_does_not_have(tmp_path: Path) -> None:
    file = benchmark(tmp_path, source={"files": "f.csv", "time": {"column": "when", "unit": "s"}})
    for command in ("check", "run"):
        call(command, file).refused("f.csv: source.time.column: no column 'when'; found 1: 't'")


def test_the_run_command_refuses_the_same_before_airflow_starts(tmp_path: Path) -> None:
    call("run", benchmark(tmp_path, sead=3)).refused("sead: unknown key")
    call("run", benchmark(tmp_path), "--experiment", "f").refused("experiment: found 'f', allowed: e")
    call("run", benchmark(tmp_path), "--scale", "2").refused("--scale: found 2.0, allowed: at most 1")


# -- one file and one question


def analyze(file: Path, *options: str) -> Answer:
    return call("analyze", file, "--json", "--master", "local[1]", *options)


def generate(tmp_path: Path, *options: str | Path, out: str = "out") -> Answer:
    """Checks that no mistake leaves a file beside the source."""
    file = tmp_path / "f.csv"
    if not file.exists():
        written(file, "t,v\n1,2\n3,4\n")
    before = sorted(tmp_path.rglob("*"))
    given = {"--time": "t", "--unit": "s", "--target": "20", "--seed": "1", "--master": "local[1]"}
    given |= dict(zip(map(str, options[::2]), map(str, options[1::2]), strict=True))
    answer = call(
        "generate", file, "--json", "--out", tmp_path / out, *[part for pair in given.items() for part in pair]
    )
    assert sorted(tmp_path.rglob("*")) == before
    return answer


def test_a_missing_file(tmp_path: Path) -> None:
    analyze(tmp_path / "none.csv", "--time", "t").refused("none.csv: no such source file; check the path")


def test_an_empty_file(tmp_path: Path) -> None:
    analyze(written(tmp_path / "f.csv", ""), "--time", "t").refused("f.csv: the file is empty; name a file with data")


def test_a_wrong_separator(tmp_path: Path) -> None:
    generate(tmp_path, "--separator", ";").refused("f.csv: ", "no column 't'", "the separator ';' does not occur there")


def test_a_missing_column(tmp_path: Path) -> None:
    generate(tmp_path, "--time", "when").refused("f.csv: ", "no column 'when'; found 2: 't', 'v'")
    generate(tmp_path, "--time", "7").refused("f.csv:", "7")


@pytest.mark.parametrize(
    ("text", "events", "options"),
    [
        ("who;at\nada;1767225600000\nbob;1767225601000\n", 2, "--time at --unit ms --separator ';'"),
        ("at,who\n2026-01-01T00:00:00Z,ada\n", 1, "--time at"),
        (
            "ada\t01.02.2026 10:00\nbob\t13.02.2026 10:00\n",
            2,
            "--time 1 --format '%d.%m.%Y %H:%M' --separator tab --no-header",
        ),
        ('{"who": {"at": 1767225600}}\n', 1, "--time who.at --unit s"),
    ],
)
def test_a_missing_time_names_options_that_read_the_file(tmp_path: Path, text: str, events: int, options: str) -> None:
    file = written(tmp_path / "f.csv", text)
    analyze(file).refused(f"--time: this option is missing; f.csv can be read with {options}")
    assert analyze(file, *shlex.split(options)).json["events"] == events


def test_a_missing_time_of_lines_that_no_guess_reads(tmp_path: Path) -> None:
    analyze(written(tmp_path / "f.csv", "t\none\n")).refused(
        "--time: this option is missing; name the event time's column"
    )


def test_an_unknown_unit(tmp_path: Path) -> None:
    generate(tmp_path, "--unit", "sec").refused("--unit: found 'sec', allowed: 'ps', 'ns', 'us', 'ms' or 's'")


def test_an_option_beside_a_data_set_that_says_it_already(tmp_path: Path) -> None:
    analyze(written(tmp_path / "f.csv", "t\n1\n"), "--dataset", "debs2013", "--unit", "s").refused(
        "--unit: found beside --dataset debs2013"
    )


def test_a_digit_that_is_no_number(tmp_path: Path) -> None:
    analyze(written(tmp_path / "f.csv", "t\n1\n"), "--time", "²").refused("no column '²'; found 1: 't'")


def test_min_above_max(tmp_path: Path) -> None:
    generate(tmp_path, "--min", "3s", "--max", "2s").refused("--min: found 3s, which is above max 2s")


def test_a_negative_delay(tmp_path: Path) -> None:
    generate(tmp_path, "--min", "-3s").refused("--min: found -3s, allowed: 0 or more")


def test_a_factor_above_100(tmp_path: Path) -> None:
    generate(tmp_path, "--target", "100.5").refused("--target: found 100.5, allowed: at most 100")


def test_a_delay_finer_than_the_source_s_times(tmp_path: Path) -> None:
    generate(tmp_path, "--max", "1500ps").refused("--max: 1500ps is not a whole number of ns")


def test_an_unreachable_master(tmp_path: Path) -> None:
    generate(tmp_path, "--master", "spark://127.0.0.1:1").refused("spark://127.0.0.1:1: no Spark master answers there")


def test_a_master_that_is_none(tmp_path: Path) -> None:
    generate(tmp_path, "--master", "local[0]").refused("master: found 'local[0]', allowed: local[2]")


def test_output_in_place_of_the_working_directory_or_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("target")
    monkeypatch.chdir(tmp_path / "here")
    for out in (".", "../link"):
        generate(tmp_path, "--out", out).refused(f"--out {out}: exists already; name a directory that does not")


def test_output_below_a_regular_file(tmp_path: Path) -> None:
    generate(tmp_path, out="f.csv/out").refused("f.csv/out: cannot be written: Not a directory", "--out")


def test_output_that_exists_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    written(tmp_path / "out" / "precious", "mine")
    generate(tmp_path).refused("out: exists already; name a directory that does not")
    generate(tmp_path, out="out/precious").refused("precious: exists already")
    assert (tmp_path / "out" / "precious").read_text() == "mine"


def test_too_little_room_is_told_before_anything_starts(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    try:
        generate(tmp_path, out="small/out").refused("MiB free, 200 MiB needed; free some space or choose another")
    finally:
        subprocess.run(["umount", place], check=True)


WITHOUT_PANDAS = """
import sys
from streamgauge.app import cli
options = "--time t --unit s --target 10 --seed 1 --out o"
sys.argv = ["streamgauge", "generate", "f.csv", *options.split()]
try:
    cli.main()
except SystemExit as end:
    assert end.code == 0
assert "pandas" not in sys.modules
"""


def test_a_one_shot_command_imports_no_pandas(tmp_path: Path) -> None:
    """The import of pandas takes half a second, and an interrupt within it is lost or a stack trace."""
    (tmp_path / "f.csv").write_text("t\n" + "".join(f"{i}\n" for i in range(50)))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
