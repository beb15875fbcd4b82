"""One door to every model: the provider's keys stay here, and every answer is metered."""
