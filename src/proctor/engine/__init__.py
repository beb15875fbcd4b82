"""A plan becomes events."""
