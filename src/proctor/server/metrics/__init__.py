"""What a server measures of itself, for Prometheus."""
