"""Apache Flink as a system under test: its cluster, its adapter, its queries; the Java part is in java/."""
