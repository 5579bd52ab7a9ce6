"""Measures what a stream does to an engine, and checks every answer."""
