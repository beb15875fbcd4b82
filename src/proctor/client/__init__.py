"""Talk to a Proctor server."""
