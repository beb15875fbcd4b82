"""Gateway: an HTTP door to a rollout's model, for programs that want a URL."""
