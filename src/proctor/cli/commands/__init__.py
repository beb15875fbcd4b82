"""One module for each command: read words, make one call, show the answer."""
