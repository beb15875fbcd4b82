"""What runs inside the sandbox: one attempt of one hosted run, played by the ordinary engine."""
