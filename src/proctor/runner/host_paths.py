"""Keep the folders of a host out of what users read. Pure."""

from __future__ import annotations

import re
from pathlib import Path

VENV_PART = "venvs/"
VENV = re.compile(r"(?:/[^\s\"'<>|:]*/)?venvs/[0-9a-f]{64}/venv\b")
"""A virtual environment of a host, at any path."""


def hide_folder(text: str, folder: Path) -> str:
    """Paths below a folder, relative to it."""
    return hide_venvs(text.replace(f"{folder}/", ""))


def hide_venvs(text: str) -> str:
    """The same for virtual environments, wherever their host keeps them."""
    return VENV.sub("venv", text) if VENV_PART in text else text
