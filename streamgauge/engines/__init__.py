"""Engines under test: how each is started, what its processes use."""
