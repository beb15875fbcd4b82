"""A Ray cluster: connect to it, describe and probe its nodes, and start processes there."""
