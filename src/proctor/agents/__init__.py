"""Agents: who works on the tasks of environments that do not own their turns."""
