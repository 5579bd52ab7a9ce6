"""The event generator of Nexmark, the online auction (Tucker et al., 2002; Apache Beam's suite)."""
