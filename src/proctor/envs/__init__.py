"""Environment classes under the module names that verifiers has; they are written in `proctor.env`."""
