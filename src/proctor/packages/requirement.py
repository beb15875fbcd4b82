"""Require an environment of a hub in a project, so that no other index can substitute another.

For pip that is the wheel's own address with its hash. For uv it is an index that is used for this package and
for no other. Neither is an extra index: of those an installer takes the highest version, from any index.
Knows nothing of servers.
"""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from proctor.api.hub import Version
from proctor.errors import ConfigError

SHA256 = re.compile(r"[0-9a-f]{64}")
UV = """\
[project]
dependencies = [{requirement}]

[tool.uv.sources]
{name} = {{ index = {index} }}

[[tool.uv.index]]
name = {index}
url = {url}
explicit = true
"""


def pip_requirement(hub: str, owner: str, name: str, version: Version) -> str:
    """A line of requirements.txt, and no more than a line, whatever the server says about the wheel."""
    if SHA256.fullmatch(version.wheel_sha256) is None:
        raise ConfigError(
            f"{hub} does not state the SHA-256 of the wheel of {owner}/{name}; is it a Proctor server?"
        )
    file = f"{hub.rstrip('/')}/simple/{quote(owner)}/{quote(name)}/{quote(version.wheel_name)}"
    return f"{name} @ {file}#sha256={version.wheel_sha256}"


def uv_project(hub: str, owner: str, name: str, version: Version) -> str:
    """The part of pyproject.toml."""
    return UV.format(
        requirement=json.dumps(f"{name}=={version.version}"),
        name=name,
        index=json.dumps(owner),
        url=json.dumps(f"{hub.rstrip('/')}/simple/{quote(owner)}/"),
    )
