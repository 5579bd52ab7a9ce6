"""The event generator of Nexmark, the benchmark of an online auction (Tucker et al., 2002; Apache Beam's suite)."""
