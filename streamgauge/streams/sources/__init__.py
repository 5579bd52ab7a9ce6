"""Formats of sources: rows of typed columns from files. Other rooms read their text."""
