"""The search for the sustainable rate, as pure functions: no clock, no network, no engine."""
