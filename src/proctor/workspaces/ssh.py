"""Import asyncssh, or say how to install it.

Imported only by modules that serve, or use, a workspace over ssh.
"""

from __future__ import annotations

from proctor.errors import ConfigError

try:
    import asyncssh
except ImportError as error:
    raise ConfigError(
        "Workspaces are served over ssh by asyncssh, which is not installed; `pip install 'proctor[ssh]'`."
    ) from error

__all__ = ["asyncssh"]
