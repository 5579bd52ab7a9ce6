"""Folders for files in the making: nothing of them stays, not even the folders above that were made for them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def temporary_folder(path: Path) -> Iterator[None]:
    """Makes a folder and those above it; at the end deletes it, and those of them that are empty again."""
    new = [parent for parent in path.parents if not parent.exists()]
    try:
        path.mkdir(parents=True)
        yield
    finally:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):  # of the first one that holds something, such as what was published
            for folder in new:
                folder.rmdir()
