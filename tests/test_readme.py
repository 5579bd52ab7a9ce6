"""README and docs say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from streamgauge.catalog.stages import STAGES

ROOT = Path(__file__).resolve().parents[1]


def stage_rows() -> str:
    return "".join(f"| {s.name} | {', '.join(s.reads)} | {s.writes} | {s.does} |\n" for s in STAGES)


def test_the_stage_table_is_that_of_the_code() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    table = re.search(r"<!-- stages -->\n(.*)<!-- /stages -->", page, re.DOTALL)
    assert table is not None
    assert table[1] == stage_rows()


def test_every_page_it_links_exists() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links {target}"


def test_requirements_for_plain_pip_are_those_of_the_lock() -> None:
    locked = set(re.findall(r'^name = "([^"]+)"\nversion = "([^"]+)"', (ROOT / "uv.lock").read_text(), re.MULTILINE))
    wanted = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert {"pyspark", "apache-airflow", "great-expectations", "numpy"} <= dict(wanted).keys()
    # it would overwrite pyspark's own files
    assert "pyspark-client==4.2.0 ; sys_platform == 'never'" in (ROOT / "requirements.txt").read_text()
    assert set(wanted) <= locked
