"""What the process of a run reads from its standard input, and the names of its variables.

Not in a file: an earlier attempt could have replaced it. Holds nothing secret; the token is in a variable.
Knows nothing of how the process is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from proctor.api.runs import DataFile

URL_VARIABLE = "PROCTOR_API_URL"
TOKEN_VARIABLE = "PROCTOR_API_KEY"
RUN_VARIABLE = "PROCTOR_RUN_ID"

RUN_FOLDER = "run"
"""The run's results, below the folder the process is started in."""
EXIT_REPORTED = 10
"""Exit code of an attempt whose final report the server has accepted. Not 0, because an environment may exit
with that."""
EXIT_RUN_OVER = 9
"""Exit code of an attempt that the server no longer accepts reports from."""


class AttemptInput(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt."""

    run_id: str
    attempt: int
    env_id: str
    """The name of the package that is installed here."""
    environment: str = ""
    """Its name on the hub, as `owner/name@version`."""
    content_hash: str | None = None
    """The hub's, of that version."""
    model: str
    settings: Mapping[str, Any] = {}
    dataset: DataFile | None = None
    """Of a recipe: the file to fetch."""
    first_batch: int = 1
    """The host used smaller numbers for its own reports of this attempt."""


def encode_attempt_input(attempt: AttemptInput) -> bytes:
    return msgspec.json.encode(attempt)


def decode_attempt_input(content: bytes) -> AttemptInput:
    return msgspec.json.decode(content, type=AttemptInput)
