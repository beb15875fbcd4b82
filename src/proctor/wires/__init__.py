"""The shapes of the models' APIs, one file each: used by the clients, the local gateway and the server's."""
