"""Files that are made once and then stay as they are. Knows nothing of what they hold."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_once(file: Path, content: Callable[[], bytes]) -> None:
    """Whole or not at all, for nobody else to read, and the same for all who start at once."""
    if file.exists():
        return
    new = file.with_name(f"{file.name}.new-{secrets.token_hex(4)}")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content())
        out.flush()
        os.fsync(out.fileno())
    try:
        file.hardlink_to(new)
    except FileExistsError:
        pass  # another server was first
    finally:
        new.unlink()
