"""Streamgauge: measures event streams and the engines that carry them.

The names of the Python interface (docs/python.md) are loaded when they are used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamgauge.app.python import Reading, Run, advise, analyze, generate

    __version__: str

__all__ = ["Reading", "Run", "advise", "analyze", "generate"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and seldom asked for

        return version("streamgauge")
    if name not in __all__:
        raise AttributeError(f"module streamgauge has no attribute {name!r}")
    return vars(import_module("streamgauge.app.python"))[name]
