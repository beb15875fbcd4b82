"""Fetch an environment from the hub if `owner/name` means one, and say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from proctor.cli.commands.hub import is_hub_reference
from proctor.cli.views.escape import echo
from proctor.client.contexts import current_context
from proctor.errors import UnknownNameError
from proctor.packages import loading as packages

if TYPE_CHECKING:
    from proctor.evaluation.hub_source import FetchedPackage
    from proctor.packages.loading import EnvironmentLocation


def find_or_fetch(env_id: str, env_dir: str | None = None) -> EnvironmentLocation | None:
    """Where an environment of the hub was fetched to; None for a local one."""
    if (
        not is_hub_reference(env_id)
        or is_here(env_id, env_dir or "./environments")
        or current_context(os.environ) is None
    ):
        return None
    return fetch(env_id).found


def fetch(reference: str) -> FetchedPackage:
    from proctor.evaluation.hub_source import fetch_package

    package = fetch_package(reference, os.environ)
    echo(f"Using {package.reference} from the hub, in {package.found.path}.", err=True)
    return package


def is_here(env_id: str, env_dir: str) -> bool:
    """Whether a folder in ./environments or an installed package has that name; a version is the hub's."""
    if "@" in env_id:
        return False
    try:
        found = packages.find_environment(env_id, env_dir)
    except UnknownNameError:
        return False
    return found.path is not None or found.registered or packages.distribution_of(found) is not None
