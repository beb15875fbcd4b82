"""Keep untrusted code apart from the machine it runs on."""
