"""calibrate, trial, search, driver: what measures an engine."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Commands come with the driver."""
