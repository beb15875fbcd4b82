"""Helpers for authors, under the module names that verifiers has for them."""
