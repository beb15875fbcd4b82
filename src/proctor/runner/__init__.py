"""Play hosted runs: a machine that claims them from a server, and the sandbox around each run."""
