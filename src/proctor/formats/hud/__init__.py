"""HUD's local traces: span files, and the job that `hud eval --json` prints."""
