"""Text of the files that `proctor env init` writes."""
