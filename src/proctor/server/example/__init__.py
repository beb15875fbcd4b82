"""The first evaluation of a new server: a small environment, played with the embedded model."""
