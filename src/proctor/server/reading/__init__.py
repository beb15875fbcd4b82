"""The runs of a server for their readers: the second store of the reading routes, over the database."""
