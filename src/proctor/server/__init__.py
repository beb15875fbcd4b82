"""The self-hosted server: a hub of environments, hosted runs, and one gateway to every model."""
