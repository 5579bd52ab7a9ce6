"""Engines under test: how each is started, and what CPU and memory its processes use."""
