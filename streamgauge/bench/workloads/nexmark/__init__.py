"""The queries of the Nexmark suite."""
