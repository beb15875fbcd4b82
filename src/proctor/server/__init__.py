"""The self-hosted server: a hub of environments, hosted runs, and one door to every model."""
