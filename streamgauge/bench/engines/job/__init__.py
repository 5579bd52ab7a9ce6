"""A job of the user's own that reads a Kafka topic and writes another one."""
