"""Streamgauge: measures event streams and the engines that carry them."""

__version__ = "0.1.0"
