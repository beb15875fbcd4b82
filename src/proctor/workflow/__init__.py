"""Rollouts of a workflow and a grader, or of a server of their author's. Knows nothing of repositories."""
