"""What the process of a run is told: a file in its folder, and three variables.

The file holds nothing secret; the token comes as a variable. Knows nothing of how the process is started.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

URL = "PROCTOR_API_URL"
TOKEN = "PROCTOR_API_KEY"
RUN = "PROCTOR_RUN_ID"

FILE = "order.json"
FOLDER = "run"
"""The run's folder, beside the order."""
HEARD = 10
"""Exit code of an attempt whose last word the server has heard. Not 0: an environment may end the process
with that."""
OVER = 9
"""Exit code of an attempt that the server no longer wants to hear of."""


class InsideOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt."""

    run_id: str
    attempt: int
    env_id: str
    model: str
    settings: Mapping[str, Any] = {}
    first_batch: int = 1
    """Numbers before it were used by the host for its own reports of this attempt."""


def write_order(folder: Path, order: InsideOrder) -> None:
    (folder / FILE).write_bytes(msgspec.json.encode(order))


def read_order(folder: Path) -> InsideOrder:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=InsideOrder)
