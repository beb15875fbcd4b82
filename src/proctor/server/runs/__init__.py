"""Runs: requested, queued, played by a host, followed and stored."""
