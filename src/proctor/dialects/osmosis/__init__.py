"""Rollouts whose entrypoint imports `osmosis_ai`: their own server, in their own Python."""
