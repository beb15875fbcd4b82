"""Words in, one call, tables out."""
