"""The rules for words: docstrings begin with a verb or a noun, sentences of the documentation are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamgauge.config.reading import schema

ROOT = Path(__file__).parents[1]
FOLDERS = ("streamgauge", "jobs", "dags", "scripts", "benchmarks", "examples", "tests")
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
MOST_WORDS = 30
NO_BEGINNINGS = re.findall(
    r"\S+",
    """
    all also and another any as at because but by each either every everybody everything for from how how's if in
    into it its just nobody none not nothing of on one only or otherwise so some such than that then there they this
    those to until what whatever when where whether which while who whose why with within without yet
    """,
)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def first_word(text: str) -> str:
    return re.split(r"[\s,.:;]", text, maxsplit=1)[0].lower()


def sentences(page: str) -> Iterator[str]:
    """Yields the sentences of a page in Markdown, without code, tables, headings, comments and link targets."""
    page = re.sub(r"<!--.*?-->|^ *```.*?^ *```|^    .*?$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"^\s*[|#].*$", "\n", page, flags=re.MULTILINE)
    page = re.sub(r"`[^`]*`", "Code", page)
    page = re.sub(r"\]\([^)]*\)", "]", page)
    for block in re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", page, flags=re.MULTILINE):
        yield from re.split(r"(?<=[.!?:])[*_)\"]*\s+(?=[A-Z*_`(\[\d\"])", " ".join(block.split()))


def words(sentence: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in sentence.split())


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_begin_with_a_verb_or_with_the_noun_that_is_returned(folder: str) -> None:
    bad = [
        f"{file.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line, text in docstrings(file.read_text())
        if first_word(text) in NO_BEGINNINGS
    ]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sentences_of_a_page_are_short(page: Path) -> None:
    long = [sentence for sentence in sentences(page.read_text()) if words(sentence) > MOST_WORDS]
    assert not long, "\n".join(long)


def test_descriptions_of_keys_begin_with_a_verb_or_a_noun() -> None:
    def described(node: object, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(node, dict):
            if isinstance(node.get("description"), str):
                yield path, node["description"]
            for key, value in node.items():
                yield from described(value, f"{path}.{key}")

    bad = [f"{path}: {text}" for path, text in described(schema(), "") if first_word(text) in NO_BEGINNINGS]
    assert not bad, "\n".join(bad)


def test_the_rules_see_what_they_forbid() -> None:
    source = 'def f():\n    """Of this checkout, with + where it was changed."""\n'
    assert [(line, first_word(text)) for line, text in docstrings(source)] == [(2, "of")]
    page = "# T\n\nOne `a b` [link](x y).\nTwo **three**: Four.\n\n| a | b |\n\n```\nno no\n```\n- an item\n- another"
    assert [s for s in sentences(page) if s] == ["One Code [link].", "Two **three**:", "Four.", "an item", "another"]
