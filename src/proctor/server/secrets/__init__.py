"""Secrets: stored sealed, passed to the runs that may have them, and redacted from those runs' output."""
