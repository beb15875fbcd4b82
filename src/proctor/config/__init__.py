"""Words into one frozen EvalConfig."""
