"""Rollouts played in processes of their own."""
