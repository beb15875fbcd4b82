"""Where verifiers has ThinkParser."""

from proctor.env.parsers import ThinkParser as ThinkParser
