"""One module per command: read the arguments, make one call, show the answer."""
