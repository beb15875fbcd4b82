"""Git repositories as sources of rollouts: one commit fetched in a sandbox, one rollout packed as a wheel."""
