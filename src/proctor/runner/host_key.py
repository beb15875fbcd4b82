"""The key that identifies a host to its server: created at the first start, kept in the host's folder.

A host's token is valid only together with this key, so that a copy of the token file is useless elsewhere.
Knows nothing of servers.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from proctor.errors import ConfigError, describe_os_error
from proctor.support.write_once import write_once

KEY_FILE = "host-key"


def new_host_key() -> str:
    return secrets.token_hex(32)


def read_host_key(data: Path) -> str:
    """The key of the host that works in this folder."""
    file = data / KEY_FILE
    try:
        data.mkdir(parents=True, exist_ok=True)
        write_once(file, lambda: new_host_key().encode() + b"\n")
        return file.read_text(errors="replace").strip()
    except OSError as error:
        raise ConfigError(f"Cannot read the host's key {file}: {describe_os_error(error)}.") from error
