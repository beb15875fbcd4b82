"""Where an environment comes from and where it lives."""
