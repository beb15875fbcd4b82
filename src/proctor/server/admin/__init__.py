"""What only admins see of a server: its hosts, its queue, its storage."""
