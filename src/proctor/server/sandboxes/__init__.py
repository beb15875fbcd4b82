"""Sandboxes, instances and served environments: places on the server where others' commands are run."""
