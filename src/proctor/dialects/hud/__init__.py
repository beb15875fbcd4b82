"""Environments that `import hud`: served by that package, a process per rollout, over the control channel."""
