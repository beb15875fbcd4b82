"""Where environments live while their tasks are played."""
