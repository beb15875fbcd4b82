"""Inspect: tasks that `from inspect_ai import task`, played by Inspect in their own process."""
