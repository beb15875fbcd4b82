"""Harbor's job folders: a result per trial, and the agent's trajectory beside it."""
