"""Rollouts → Summary. Knows nothing of files or terminals."""
