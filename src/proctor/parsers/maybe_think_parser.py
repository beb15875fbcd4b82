"""Where verifiers has MaybeThinkParser."""

from proctor.env.parsers import MaybeThinkParser as MaybeThinkParser
