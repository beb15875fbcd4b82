"""Git repositories as sources of rollouts: fetched, built by content, and played like pushed versions."""
