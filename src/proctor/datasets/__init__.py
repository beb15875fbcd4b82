"""Dataset files: read row by row, validated, selected from. Knows nothing of models, runs or servers."""
