"""Draws the table of rates in docs/disorder.md as docs/images/disorder.svg; needs Chromium and the extra `paper`.

Usage: .venv/bin/python scripts/disorder_picture.py
"""

from __future__ import annotations

import re
from pathlib import Path

import plotly.graph_objects as go

DOCS = Path(__file__).resolve().parents[1] / "docs"
#: a rate with its interval, in thousand events/s
RATE = re.compile(r"([\d,]+) \(([\d,]+) to ([\d,]+)\)")


def table(text: str) -> tuple[list[str], list[list[str]]]:
    """Returns the names of the systems, and the cells of each row, of the first table with rates."""
    head, _, *rows = re.search(r"^(\| out of order \|.*?)\n\n", text, re.DOTALL | re.MULTILINE)[1].splitlines()
    names = re.findall(r"`([^`]+)`", head)
    return names, [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def main() -> None:
    names, rows = table((DOCS / "disorder.md").read_text())
    figure = go.Figure()
    for column, name in enumerate(names, 1):
        rates = [[float(one.replace(",", "")) for one in RATE.fullmatch(row[column]).groups()] for row in rows]
        figure.add_scatter(
            x=[row[0] for row in rows],
            y=[rate for rate, _, _ in rates],
            error_y={
                "symmetric": False,
                "array": [high - rate for rate, _, high in rates],
                "arrayminus": [rate - low for rate, low, _ in rates],
            },
            name=name,
        )
    figure.update_layout(
        template="plotly_white",
        width=760,
        height=380,
        margin={"l": 60, "r": 20, "t": 20, "b": 50},
        xaxis_title="events out of order",
        yaxis={"title": "thousand events/s", "type": "log", "tickvals": [100, 200, 500, 1000, 2000], "range": [2, 3.4]},
    )
    figure.write_image(DOCS / "images" / "disorder.svg")


if __name__ == "__main__":
    main()
