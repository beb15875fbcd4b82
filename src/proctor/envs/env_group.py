"""Where verifiers has EnvGroup."""

from proctor.env.group import EnvGroup as EnvGroup
