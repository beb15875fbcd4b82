"""Files that are created once and never change. Knows nothing of their content."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path


def write_once(file: Path, content: Callable[[], bytes]) -> None:
    """Create a private file atomically; processes that race to create it all get the same content."""
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
        pass  # another process was first
    finally:
        new.unlink()
