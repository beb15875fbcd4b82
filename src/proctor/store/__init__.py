"""Finished rollouts on disk."""
