"""Plumbing without knowledge of evaluation."""
