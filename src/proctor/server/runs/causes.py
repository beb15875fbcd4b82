"""Explain why a run did not simply finish: a sentence and a next step for every code.

Pure; knows nothing of databases or processes.
"""

from __future__ import annotations

import re
from typing import get_args

from msgspec.structs import replace

from proctor.api.runs import Cause, CauseCode

NEXT_STEPS: dict[CauseCode, str] = {
    "environment_error": "Fix the environment, push a new version, and start a run of it.",
    "install_failed": "Look in the log for pip's output; fix the dependencies and push a new version.",
    "missing_permission": "Start the run again with the flag that grants it.",
    "missing_secret": (
        "Set it with `proctor secret set NAME --env OWNER/NAME`, then `proctor eval resume ID`; or start a "
        "run with --custom-secrets NAME."
    ),
    "time_limit": "Continue with `proctor eval resume ID`, or allow more time with --timeout-minutes.",
    "balance": "Ask an admin for a grant (`proctor wallet grant`), then use `proctor eval resume ID`.",
    "budget": "Continue with `proctor eval resume ID --max-cost USD`.",
    "provider": "Try again later with `proctor eval resume ID`, or choose another model.",
    "crashed": "Look at the end of the log; `proctor eval resume ID` continues after the finished rollouts.",
    "limit_exceeded": "Use less, or ask the operator for more; then continue with `proctor eval resume ID`.",
    "stopped_by_user": "Continue with `proctor eval resume ID`.",
    "internal": "Tell the server's operator; its log has the details.",
}
READ_VARIABLE = re.compile(r"(?:needs|reads the variable) ([A-Z][A-Z0-9_]*)")
"""Where the message of a missing secret names it."""
assert set(NEXT_STEPS) == set(get_args(CauseCode))


def with_next_step(why: Cause, run_id: str, environment: str) -> Cause:
    """With a next step that can be typed as it is."""
    step = why.next_step or NEXT_STEPS[why.code]
    if missing := READ_VARIABLE.search(why.message):
        step = step.replace(" NAME", f" {missing[1]}")
    return replace(why, next_step=step.replace(" ID", f" {run_id}").replace(" OWNER/NAME", f" {environment}"))


def build_cause(code: CauseCode, message: str) -> Cause:
    return Cause(code=code, message=message, next_step=NEXT_STEPS[code])


BY_OUTCOME: dict[str, CauseCode] = {
    "model_error": "provider",
    "environment_error": "environment_error",
    "grader_error": "environment_error",
    "agent_error": "environment_error",
}
"""Of outcomes without a score: what caused them."""


def cause_of_no_scores(outcomes: dict[str, int], commonest: str) -> Cause | None:
    """Why a run that was played to its end has not a single score; None if it has one, or none is due."""
    failed = {outcome: count for outcome, count in outcomes.items() if outcome in BY_OUTCOME and count}
    if not failed or sum(failed.values()) != sum(outcomes.values()):
        return None
    outcome = max(failed, key=lambda name: failed[name])
    return build_cause(BY_OUTCOME[outcome], f"Not one rollout was scored; the most common error: {commonest}")
