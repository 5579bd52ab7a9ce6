"""Slow, obvious implementations of the definitions, written apart from the library's own."""
