"""Counts what a stream loses to a query's watermark at the stream's own speed; pure functions on numpy."""
