"""Keeps the figures of a benchmark that takes long, so that it can be run in parts."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any


class Kept:
    """Figures as JSON lines in a file to which several runs may add."""

    @staticmethod
    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--out", type=Path, help="JSON lines of all figures, to add to")
        parser.add_argument("--print", action="store_true", help="only the tables of what --out holds")

    def __init__(self, args: argparse.Namespace) -> None:
        self._file: Path | None = args.out
        there = self._file is not None and self._file.exists()
        self.all = [json.loads(line) for line in self._file.read_text().splitlines()] if there and self._file else []

    def add(self, figures: dict[str, Any]) -> None:
        self.all.append(figures)
        if self._file is not None:
            with self._file.open("a") as out:
                out.write(json.dumps(figures) + "\n")
