"""Inspect's logs: `.eval` archives and `.json` files."""
