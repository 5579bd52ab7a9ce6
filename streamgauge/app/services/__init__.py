"""Servers to try jobs with: a local Kafka broker, and a schema registry."""
