"""The bridge between the driver's wire and Kafka's topics."""
