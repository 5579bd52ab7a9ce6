"""Python interface for notebooks and scripts: profiles, streams, and runs as typed objects. See docs/python.md."""

from streamgauge.app.cli.source_options import Reading
from streamgauge.app.python.run import Run
from streamgauge.app.python.streams import advise, analyze, generate

__all__ = ["Reading", "Run", "advise", "analyze", "generate"]
