"""Runs the commands that stand in `console` blocks of the documentation, and compares what they print.

In a block, a line `$ command` is run, and the lines below it are what it prints. A line `…` stands for any lines.
Commands in other blocks take minutes, a store or a cluster: their names and options are checked.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from streamgauge.app import cli
from tests.command import Call, run
from tests.test_floors import FILES, WINGS, imports, name_of, room

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
ARCHITECTURE = ROOT / "docs" / "architecture.md"


def blocks(page: Path, kind: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [text for its, text in every if its == kind]


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each command with the lines that it shall print."""
    for part in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
        command, *printed = part.splitlines()
        yield command, printed


def matches(printed: list[str], wanted: list[str]) -> bool:
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else re.escape(line) + r"\n" for line in wanted)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


WITH_OUTPUT = [page for page in PAGES if blocks(page, "console")]


@pytest.mark.parametrize("page", WITH_OUTPUT, ids=lambda page: page.stem)
def test_a_page_s_commands_print_what_it_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    for script in blocks(page, "python"):
        name = re.match(r"# (\w+)\.py\n", script)
        if name:
            made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
            [target] = re.findall(rf"python3 {name[1]}.py > (\S+)", page.read_text())
            (tmp_path / target).write_text(made)
    for block in blocks(page, "console"):
        for command, wanted in commands(block):
            program, *arguments = shlex.split(command)
            if program == "printf":  # it makes a file
                subprocess.run(["bash", "-c", command], check=True)
                continue
            assert program == "streamgauge"
            answer = run(Call(arguments))
            assert answer.code == 0, answer.err
            printed = [line.rstrip() for line in answer.out.splitlines()]
            assert matches(printed, wanted), f"{command} prints:\n{answer.out}"


def named() -> list[str]:
    """Arguments of each `streamgauge` command that stands in a block without what it prints."""
    texts = [block.replace("\\\n", "") for page in PAGES for kind in ("", "sh") for block in blocks(page, kind)]
    command = re.compile(r"^(?:\$ |\S+=\S+ )*(?:\.venv/bin/)?streamgauge (.+)", re.MULTILINE)
    return sorted({found[1].strip() for text in texts for found in command.finditer(text)})


@pytest.mark.parametrize("arguments", named())
def test_a_named_command_and_its_options_exist(arguments: str) -> None:
    command, context = typer.main.get_command(cli.application()), None
    words = [word for word in shlex.split(arguments, comments=True) if word != "…"]
    while words:
        context = command.make_context(command.name, words, parent=context)
        words = [*getattr(context, "_protected_args", ()), *context.args]
        if not hasattr(command, "commands"):
            break
        command = command.commands[words.pop(0)]


def section(wing: str) -> str:
    return ARCHITECTURE.read_text().split(f"\n### {wing}\n")[1].split("\n##")[0]


def wing_of(module: str) -> str:
    return room(module).partition(".")[0]


@pytest.mark.parametrize("wing", WINGS)
def test_a_wing_s_section_names_all_that_it_imports_and_all_its_rooms(wing: str) -> None:
    may = re.search(r"^- \*\*May import:\*\* (.*)", section(wing), re.MULTILINE)
    assert may is not None
    above = list(WINGS)[: list(WINGS).index(wing)]
    allowed = set(above) if "all wings above it" in may[1] else set(re.findall(r"`(\w+)`", may[1]))
    ours = [module for file in FILES if wing_of(name_of(file)) == wing for module in imports(file)]
    wings = {wing_of(module) for module in ours if module.startswith("streamgauge.")} & set(WINGS)
    assert wings - {wing} <= allowed <= set(above)
    assert re.findall(r"^\| `(\w+)/` \|", section(wing), re.MULTILINE) == list(WINGS[wing])


def test_streams_works_alone_as_its_section_says(tmp_path: Path) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    script, printed = re.findall(r"```(?:python|text)\n(.*?)```", section("streams"), re.DOTALL)
    script += "import sys\nprint({'pyspark', 'airflow', 'streamgauge.app'} & set(sys.modules))\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{printed}set()\n"


@pytest.mark.parametrize(
    ("printed", "wanted", "same"),
    [
        (["a", "b"], ["a", "b"], True), (["a", "b"], ["a"], False), (["a", "b", "c"], ["a", "…", "c"], True),
        (["a", "c"], ["a", "…", "c"], True), (["a", "b", "c"], ["…", "c"], True), (["a", "b"], ["a", "…"], True),
        (["ab", "c"], ["…", "b", "c"], False), (["a", "b", "c"], ["a", "…", "d"], False),
    ],
)  # fmt: skip
def test_dots_stand_for_any_lines(printed: list[str], wanted: list[str], same: bool) -> None:
    assert matches(printed, wanted) is same


def test_pages_link_to_no_file_outside_that_the_rendered_site_lacks_and_each_is_in_its_navigation() -> None:
    outside = {link for page in PAGES[1:] for link in re.findall(r"\]\(\.\./([^)#]+)", page.read_text())}
    made = set(re.findall(r'"\$here/(\w+\.md)"', (ROOT / "scripts" / "docs.sh").read_text()))
    assert outside <= made
    shown = set(re.findall(r"[\w-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert {page.name for page in PAGES[1:]} <= shown
