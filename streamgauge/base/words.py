"""Words for counts."""

from __future__ import annotations

#: separates thousands on a page
THIN = "\u202f"


def counted(count: int, noun: str, separator: str = ",") -> str:
    """A count with its noun, such as 1 run or 2,000 runs."""
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{plural}".replace(",", separator)
