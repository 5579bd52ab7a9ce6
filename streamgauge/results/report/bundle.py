"""Exports a run for a paper: figures (SVG, CSV), tables (LaTeX, Markdown, CSV), configuration, hashes, how to cite."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from streamgauge import __version__
from streamgauge.base.errors import UserError
from streamgauge.base.folders import temporary_folder
from streamgauge.base.places import as_user_error
from streamgauge.base.printing import as_cell
from streamgauge.base.shipped import SHIPPED
from streamgauge.catalog.artifacts import Store
from streamgauge.config import Benchmark
from streamgauge.results.report import again, page
from streamgauge.results.report.blocks import Chart, Section, Table, blocks_in, plain
from streamgauge.results.report.run_records import Records

#: width and height of a figure in CSS pixels, which a column of a paper takes well
_SIZE = (640, 360)
_TEX = {"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        **{one: f"\\{one}" for one in "&%$#_"}, "\u202f": r"\,", "\u00a0": "~", "\u2060": "", "−": "$-$", "–": "--",
        "—": "---", "µ": r"$\mu$", "×": r"$\times$", "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$", "\u200b": "",
        "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}  # fmt: skip


def export(benchmark: Benchmark, store: Store, run_id: str, out: Path, *, svg: bool = True) -> list[Path]:
    """Writes the bundle into the new folder `out`; returns its files.

    svg: draw the figures, which needs Chromium; their numbers are written either way.
    Raises UserError if that is not possible, or if a record is damaged.
    """
    out = out.absolute()
    if out.exists() and not out.is_dir():
        raise UserError(f"{out}: is a file; name a new folder with --out")
    if out.exists() and any(out.iterdir()):
        raise UserError(f"{out}: this folder is not empty; name a new one with --out")
    records = Records(benchmark, store, run_id)
    half = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(half, ignore_errors=True)
    try:
        with temporary_folder(half):
            for folder in ("figures", "tables"):
                (half / folder).mkdir()
            drawn = _write_blocks(half, page.sections(records))
            _write_about(half, records)
            records.require_sound()
            if svg:
                _draw(half / "figures", drawn)
            if out.exists():
                out.rmdir()
            half.rename(out)
    except OSError as problem:
        raise as_user_error(problem, out) from None
    return sorted(file for file in out.rglob("*") if file.is_file())


def _write_blocks(folder: Path, sections: list[Section]) -> dict[str, dict[str, Any]]:
    """Writes each chart's and each table's numbers; returns the figures by the name of their file."""
    figures: dict[str, dict[str, Any]] = {}
    shown = [(section, block) for section, block in blocks_in(sections) if isinstance(block, Chart | Table)]
    for number, (section, block) in enumerate(shown, 1):
        title = block.title if isinstance(block, Chart) else block.caption or block.folded
        name = f"{number:02d}-{_slug(' '.join(filter(None, (section.title, title))))}"
        if isinstance(block, Chart):
            figures[name] = block.figure
            (folder / "figures" / f"{name}.csv").write_text(as_csv(block.table))
        else:
            (folder / "tables" / f"{name}.csv").write_text(as_csv(block))
            (folder / "tables" / f"{name}.md").write_text(as_markdown(block))
            (folder / "tables" / f"{name}.tex").write_text(as_latex(block))
    return figures


def as_csv(table: Table) -> str:
    """The table as CSV; a number has no thousands separators, so that a program reads it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(as_cell, table.columns))
    writer.writerows([[as_cell(_number(plain(cell))) for cell in row] for row in table.rows])
    return text.getvalue()


def as_markdown(table: Table) -> str:
    lines = [table.columns, ["---:" if one else "---" for one in table.numeric]]
    lines += [[plain(cell).replace("\u200b", "").replace("|", "\\|") for cell in row] for row in table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def as_latex(table: Table) -> str:
    """The table as a tabular with the rules of booktabs."""
    columns = "".join("r" if one else "l" for one in table.numeric)
    rows = [_tex_row(map(plain, row)) for row in table.rows]
    head = _tex_row(table.columns)
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(body) + "\n"


def _write_about(folder: Path, records: Records) -> None:
    """Writes the benchmark file, and what a reader needs to cite the figures and to make them again."""
    (folder / "benchmark.yaml").write_text(again.settings(records.benchmark) + "\n")
    (folder / "environment.json").write_text(json.dumps([asdict(one) for one in records.environments], indent=1))
    cite = ""
    if (citation := SHIPPED / "CITATION.cff").exists():  # in a clone
        shutil.copy(citation, folder / "CITATION.cff")
        cite = " `CITATION.cff` says how to cite Streamgauge."
    streams = [
        f"| {one.experiment.name} | {one.experiment.seed} | {one.manifest.events if one.manifest else ''} "
        f"| `{one.manifest.sha256 if one.manifest else 'not made'}` |"
        for one in records.streams
    ]
    software = records.environments[0].software if records.environments else {}
    versions = ", ".join(f"{name} {version}" for name, version in software.items() if version)
    (folder / "README.md").write_text(
        f"# {records.benchmark.name}, run {records.run_id}\n\n{records.benchmark.description}\n\n"
        f"Measured with {versions or f'streamgauge {__version__}'}. To make the same streams again, put the source "
        "files beside `benchmark.yaml`, on any machine:\n\n"
        "```\nstreamgauge run benchmark.yaml --only validate\n```\n\n"
        "The sha256 covers every event of a stream in its order; the same one proves the same stream.\n\n"
        "| experiment | seed | events | sha256 |\n|---|---|---|---|\n" + "\n".join(streams) + "\n\n"
        "`figures/` has each chart as SVG, and its numbers as CSV. `tables/` has each table as LaTeX (with booktabs), "
        f"Markdown and CSV. `environment.json` names the machine.{cite}\n"
    )


def _draw(folder: Path, figures: dict[str, dict[str, Any]]) -> None:
    """Draws each figure as SVG in headless Chromium. Raises UserError if there is none."""
    try:
        import kaleido
    except ImportError as problem:
        raise UserError(f"figures are drawn by kaleido, which is not installed ({problem}); or give --no-svg") from None
    width, height = _SIZE
    options = {"format": "svg", "width": width, "height": height}
    jobs = [{"fig": one, "path": str(folder / f"{name}.svg"), "opts": options} for name, one in figures.items()]
    try:
        kaleido.write_fig_from_object_sync(jobs)
    except Exception as problem:
        said = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
        raise UserError(f"the figures could not be drawn: {said}; install Chromium, or give --no-svg") from None


def _number(text: str) -> str:
    text = text.replace("\u2060", "").replace("\u200b", "")
    number = text.replace("\u202f", "").replace("−", "-")
    return number if re.fullmatch(r"[-+]?\d[\d.]*", number) else text.replace("\u202f", " ").replace("\u00a0", " ")


def _tex_row(cells: Iterable[str]) -> str:
    """A row of a tabular; what stands before it would take a leading [ or * as its own argument."""
    row = " & ".join(map(_tex, cells))
    return f"{'{}' if row.lstrip().startswith(('[', '*')) else ''}{row} \\\\"


def _tex(text: str) -> str:
    return "".join(_TEX.get(one, one) for one in text)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]
