"""What the process of a run is told: on its standard input, and by three variables.

Not in a file: an earlier attempt could have put something else in its place. Holds nothing secret; the token
comes as a variable. Knows nothing of how the process is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

URL_VARIABLE = "PROCTOR_API_URL"
TOKEN_VARIABLE = "PROCTOR_API_KEY"
RUN_VARIABLE = "PROCTOR_RUN_ID"

RUN_FOLDER = "run"
"""Where the run is kept, below the folder the process is started in."""
EXIT_REPORTED = 10
"""Exit code of an attempt whose last word the server has heard. Not 0: an environment may end the process
with that."""
EXIT_RUN_OVER = 9
"""Exit code of an attempt that the server no longer wants to hear of."""


class AttemptInput(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt."""

    run_id: str
    attempt: int
    env_id: str
    model: str
    settings: Mapping[str, Any] = {}
    first_batch: int = 1
    """Numbers before it were used by the host for its own reports of this attempt."""


def encode_attempt_input(attempt: AttemptInput) -> bytes:
    return msgspec.json.encode(attempt)


def decode_attempt_input(content: bytes) -> AttemptInput:
    return msgspec.json.decode(content, type=AttemptInput)
