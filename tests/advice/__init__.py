"""Advice on watermark delays."""
