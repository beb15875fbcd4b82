"""Where verifiers has Parser."""

from proctor.env.parsers import Parser as Parser
