"""Shows the README as a page of the documentation: mkdocs knows only files below docs/."""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Adds the README, with its links as seen from docs/."""
    text = Path(config.config_file_path).with_name("README.md").read_text()
    files.append(File.generated(config, "overview.md", content=text.replace("](docs/", "](")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lets other pages' links to the README find it."""
    return markdown.replace("](../README.md", "](overview.md")
