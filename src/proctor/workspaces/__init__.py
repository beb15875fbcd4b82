"""Workspaces: a folder of its own for every rollout, and the walls around what runs in it."""
