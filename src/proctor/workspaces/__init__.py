"""Workspaces: a folder for every rollout, and the sandbox around what runs in it."""
