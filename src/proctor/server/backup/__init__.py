"""One archive of everything a server keeps, taken while it runs, and a server made from it."""
