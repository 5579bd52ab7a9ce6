"""Judges nights and releases, by change points, comparisons of A with B, and reruns."""
