"""Repositories of rollouts, recipes and data: their layout, their environments, their health."""
