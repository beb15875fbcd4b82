"""Runs: asked for, queued, played somewhere, followed, kept."""
