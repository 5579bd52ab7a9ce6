"""Describes a stream in frozen models: its source, its topic, its delays. A benchmark file has them as sections."""
