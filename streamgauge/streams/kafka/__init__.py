"""Connects to Kafka, and reads and writes its records."""
