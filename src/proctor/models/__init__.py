"""Model clients: one file each, loaded only by name."""
