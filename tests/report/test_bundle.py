"""Tests the export of a run: its numbers as programs and papers read them, and its benchmark, which loads again."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from streamgauge.catalog.artifacts import Store
from streamgauge.config import load
from streamgauge.results.report import build, bundle
from streamgauge.results.report.blocks import Table, Text
from tests.command import Call, run
from tests.example_run import CELLS, RUN, benchmark, record_cells, record_example

TABLE = Table(
    ["cell & system", "rate"], [["a_b | 20 %", "1\u202f234"], [Text("5 ≤ x", "good"), "−2.5"], ["none", None]]
)


def test_a_table_as_csv_has_plain_numbers() -> None:
    assert bundle.as_csv(TABLE) == "cell & system,rate\na_b | 20 %,1234\n5 ≤ x,-2.5\nnone,—\n"


def test_a_table_as_markdown_aligns_numbers() -> None:
    assert bundle.as_markdown(TABLE) == (
        "| cell & system | rate |\n| --- | ---: |\n| a_b \\| 20 % | 1\u202f234 |\n| 5 ≤ x | −2.5 |\n| none | — |\n"
    )


def test_a_table_as_latex_escapes_what_tex_reads() -> None:
    assert bundle.as_latex(TABLE).splitlines() == [
        r"\begin{tabular}{lr}", r"\toprule", r"cell \& system & rate \\", r"\midrule",
        r"a\_b \textbar{} 20 \% & 1\,234 \\", r"5 $\le$ x & $-$2.5 \\", r"none & --- \\",
        r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip


def test_signs_that_tex_s_fonts_lack_and_invisible_ones_are_written_or_left_out() -> None:
    table = Table(["idle > 60 s"], [["a\u200bb<c"]])
    assert bundle.as_latex(table).splitlines()[2:5:2] == [r"idle \textgreater{} 60 s \\", r"ab\textless{}c \\"]
    assert "ab<c" in bundle.as_markdown(table)


def test_texts_of_others_are_no_formulas_and_no_arguments_of_tex() -> None:
    table = Table(["[name", "v"], [["=1+1", "-2.5"], ["*late", "@x"], [" [a]", "+1"]])
    assert bundle.as_csv(table) == "[name,v\n'=1+1,-2.5\n*late,'@x\n [a],+1\n"
    assert bundle.as_latex(table).splitlines()[2:7] == [
        r"{}[name & v \\", r"\midrule", r"=1+1 & -2.5 \\", r"{}*late & @x \\", r"{} [a] & +1 \\",
    ]  # fmt: skip


@pytest.fixture
def artifacts(tmp_path: Path) -> Path:
    made = benchmark(tmp_path / "source.csv", **CELLS)
    store = Store(tmp_path / "artifacts")
    record_cells(record_example(store, made))
    build(made, store, RUN)
    return store.root


def test_a_run_is_exported_with_all_that_a_reader_needs(artifacts: Path, tmp_path: Path) -> None:
    out = tmp_path / "paper"
    call = Call(["export", RUN, "--artifacts", str(artifacts), "--out", str(out), "--no-svg"])
    said = run(call).out
    files = {file.relative_to(out).as_posix() for file in out.rglob("*") if file.is_file()}
    assert said == f"{len(files)} files: {out}\n"
    assert {"README.md", "benchmark.yaml", "environment.json", "CITATION.cff"} <= files
    figures = sorted((out / "figures").iterdir())
    assert len(figures) == 39, "one for each chart of the page"
    for file in figures:
        columns, *rows = csv.reader(file.open())
        assert rows
        assert {len(row) for row in rows} == {len(columns)}
    names = {file.rpartition(".")[0] for file in files if file.startswith("tables/")}
    assert {f"{name}.{kind}" for name in names for kind in ("csv", "md", "tex")} <= files
    readme = (out / "README.md").read_text()
    assert "streamgauge run benchmark.yaml --only validate" in readme
    assert load(out / "benchmark.yaml").name == "flights"
    run(call).refused(f"{out}: this folder is not empty; name a new one with --out")
    (tmp_path / "file").touch()
    call = Call(["export", RUN, "--artifacts", str(artifacts), "--out", str(tmp_path / "file"), "--no-svg"])
    run(call).refused(f"{tmp_path / 'file'}: is a file; name a new folder with --out")


def test_a_run_without_its_benchmark_and_an_unknown_run_are_refused(artifacts: Path, tmp_path: Path) -> None:
    (artifacts / "runs" / RUN / "benchmark.json").unlink()
    call = ["export", RUN, "--artifacts", str(artifacts), "--out", str(tmp_path / "x"), "--no-svg"]
    run(Call(call)).refused("this run has no readable benchmark.json")
    run(Call(["export", "none", *call[2:]])).refused("none")
    assert not (tmp_path / "x").exists()
