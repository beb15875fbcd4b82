"""The server's gateway to every model: it keeps the providers' keys and meters every answer."""
