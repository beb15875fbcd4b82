"""Secrets: kept sealed, given to the runs that may have them, and taken out of what those runs say."""
