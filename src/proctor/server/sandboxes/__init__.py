"""Sandboxes, instances and served environments: where the server runs commands for others."""
