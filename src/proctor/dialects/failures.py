"""Say why a foreign environment could not be loaded, and what to do about it. Knows nothing of frameworks."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError

LONGEST_CAUSE = 300


def explain_loading(name: str, python: Path, details: Mapping[str, Any]) -> ConfigError:
    """One sentence about what its code raised in the child, and the way out."""
    if missing := details.get("missing"):
        return ConfigError(describe_missing(name, str(missing), python, details))
    if details.get("is_offline"):
        return ConfigError(
            f"{name} needs data that cannot be reached from here: {describe_cause(details)}. Run it once "
            f"with a network, so that the data is cached, or name a local copy by its own arguments (-a)."
        )
    if details.get("is_refusal"):
        return ConfigError(f"{name} cannot be played here: {details.get('message')}.")
    return ConfigError(f"{name} cannot be loaded: {describe_cause(details)}. Its traceback is in the log.")


def describe_missing(name: str, missing: str, python: Path, details: Mapping[str, Any]) -> str:
    location = f" ({details['where']})" if details.get("where") else ""
    if python == Path(sys.executable):
        return (
            f"{name} imports {missing!r}, which is not installed beside Proctor{location}. Install it, or "
            f"pass --isolated to have what its pyproject.toml requires in a virtual environment of its own."
        )
    return (
        f"{name} imports {missing!r}, which is not installed in its virtual environment{location}. Add the "
        f"package to `dependencies` in its pyproject.toml, or in a `# /// script` comment of a single file."
    )


def describe_cause(details: Mapping[str, Any]) -> str:
    """The exception and, if another one caused it, that one, with its line."""
    kind, message = details.get("type"), str(details.get("message"))[:LONGEST_CAUSE].strip().rstrip(".")
    root = details.get("root_type")
    cause = (
        f", because of {root}: {str(details.get('root'))[:LONGEST_CAUSE].strip().rstrip('.')}"
        if root and root != kind
        else ""
    )
    location = f" ({details['where']})" if details.get("where") else ""
    return f"{kind}: {message}{cause}{location}"
