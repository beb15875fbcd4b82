"""Why a run could not be played, as a Cause; the server adds the usual next steps. Pure."""

from __future__ import annotations

import re

from proctor.api.runs import Cause, CauseCode
from proctor.errors import AuthError, ConfigError, ModelError, ProctorError, list_causes

VARIABLE = re.compile(r"KeyError: '([A-Z][A-Z0-9_]*)'")
ASK_OTHERWISE = (
    "Start another run with different settings, or push a version of the environment that accepts these."
)


def describe_cause(error: BaseException) -> Cause:
    text = " ".join(str(error).split()) or type(error).__name__
    missing = VARIABLE.search(text)
    if missing is not None:
        return build_cause(
            "missing_secret", f"The environment needs {missing[1]}, which the run does not have: {text}"
        )
    if any(isinstance(link, (AuthError, ModelError)) for link in list_causes(error)):
        return build_cause("provider", text)
    if isinstance(error, ConfigError):
        raised_there = any(not isinstance(link, ProctorError) for link in list_causes(error))
        return build_cause("environment_error", text, "" if raised_there else ASK_OTHERWISE)
    return build_cause("environment_error", f"{type(error).__name__}: {text}")


def build_cause(code: CauseCode, message: str, next_step: str = "") -> Cause:
    return Cause(code=code, message=message, next_step=next_step)
