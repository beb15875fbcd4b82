"""Live displays of runs in progress."""
