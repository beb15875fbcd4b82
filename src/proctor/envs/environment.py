"""Where verifiers has Environment."""

from proctor.env.templates import Environment as Environment
