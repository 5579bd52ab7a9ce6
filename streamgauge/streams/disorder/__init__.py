"""Disorder: definitions, profile, delays, exact generation, hash of a stream."""
