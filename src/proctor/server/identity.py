"""Which of the servers on one database this is: an id in its data folder, created at the first start.

Knows nothing of what uses it.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from proctor.errors import ConfigError, describe_os_error
from proctor.support.write_once import write_once

ID_FILE = "server-id"
ID = re.compile("[0-9a-f]{12}")


def server_id(data: Path) -> str:
    file = data / ID_FILE
    try:
        write_once(file, lambda: secrets.token_hex(6).encode() + b"\n")
        known = file.read_text(errors="replace").strip()
    except OSError as error:
        raise ConfigError(f"Cannot read the server's id {file}: {describe_os_error(error)}.") from error
    if not ID.fullmatch(known):
        raise ConfigError(f"{file} does not hold a server's id; remove it to have a new one created.")
    return known
