"""Rubrics under the module names that verifiers has for them; they are written in `proctor.env`."""
