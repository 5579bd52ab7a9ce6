"""The queries of the Nexmark suite on Spark, one file each."""
