"""Reads a page back with an HTML parser."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """Text by element, tables, figures; refuses tags that do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.figures: list[dict[str, Any]] = []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        if tag == "a":
            self.links.append(found["href"] or "")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append((tag, found))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        if not self.open:
            return
        tag, attrs = self.open[-1]
        if attrs.get("type") == "application/json":
            self.figures.append(json.loads(data))
        elif tag not in ("script", "style") and data.strip():
            for enclosing, its in self.open:
                self.text.setdefault(its.get("id") or f".{its.get('class') or enclosing}", []).append(
                    " ".join(data.split())
                )
            if any(enclosing in ("td", "th") for enclosing, _ in self.open):
                self.rows[-1][-1] += " ".join(data.split())

    def row(self, first: str) -> list[str]:
        return next(row for row in self.rows if row and row[0] == first)
