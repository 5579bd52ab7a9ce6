"""Rich's console, for texts that hold names from files of others."""

from __future__ import annotations

from typing import Any

import rich.console
from rich.text import Text

from streamgauge.base.printing import printable


class Console(rich.console.Console):
    """A console whose colours are its own: escape codes in a text are shown."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)
