"""Words for counts and for lists of names."""

from __future__ import annotations

from collections.abc import Sequence

#: separates thousands on a page
THIN = "\u202f"
#: names that are shown of a longer list; one more is shown too, as "and 1 more" is no shorter
FEW = 3


def counted(count: int, noun: str, separator: str = ",") -> str:
    """A count with its noun, such as 1 run or 2,000 runs."""
    plural = "" if count == 1 else "es" if noun.endswith("s") else "s"
    return f"{count:,} {noun}{plural}".replace(",", separator)


def fewer(count: int, of: int, noun: str) -> str:
    """Says how many count where not all do, such as 2 of 3 trials count; else empty."""
    return "" if count == of else f"{count} of {counted(of, noun)} {'counts' if count == 1 else 'count'}"


def first_of(names: Sequence[str]) -> str:
    """Names in few words, such as "a, b" or "a, b, c and 5 more"."""
    rest = len(names) - FEW
    return ", ".join(names) if rest <= 1 else f"{', '.join(names[:FEW])} and {rest} more"


def shown(value: float) -> str:
    """The value with six digits, and with all digits of a larger whole part."""
    return f"{value:,.6g}" if abs(value) < 999_999.5 else f"{value:,.0f}"
