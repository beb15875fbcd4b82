"""Models as evaluations use them: paced, replicated, shared."""
