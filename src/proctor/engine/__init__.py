"""Play a plan of rollouts, and report each step as an event."""
