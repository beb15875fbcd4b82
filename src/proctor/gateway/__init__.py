"""An HTTP gateway to a rollout's model, for programs that need a URL."""
