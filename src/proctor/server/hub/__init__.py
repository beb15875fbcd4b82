"""The hub: push, find, read and install environments."""
