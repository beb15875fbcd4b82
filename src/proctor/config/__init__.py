"""Settings from every source, merged into one frozen EvalConfig."""
