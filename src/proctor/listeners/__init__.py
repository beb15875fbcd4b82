"""Listeners observe a run from outside: one file each, loaded only by name."""
