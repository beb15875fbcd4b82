"""The hub: environments that are pushed, found, read and installed."""
