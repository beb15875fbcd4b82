"""The control channel: how an environment is played from outside its process."""
