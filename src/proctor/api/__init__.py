"""The shapes of a Proctor server's REST API, defined once for the server, the client and their readers."""
