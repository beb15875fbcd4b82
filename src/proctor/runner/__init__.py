"""Where hosted runs are played: a machine that asks a server for work, and walls around each run."""
