"""The shapes of a Proctor server's REST API, said once for the server, the client and whoever reads them."""
