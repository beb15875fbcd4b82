"""The contract of what starts processes on the nodes of a cluster.

Knows nothing of how it does that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from proctor.cluster.messages import ClusterNode, Placement, ProcessEnd, StartedProcess


class ProcessLauncher(Protocol):
    """Places processes on nodes; a Cluster does."""

    async def nodes(self) -> list[ClusterNode]: ...
    async def launch(
        self,
        key: str,
        module: str,
        line: str,
        placement: Placement,
        *,
        variables: Mapping[str, str] | None = None,
        greeting_seconds: float = 60.0,
        name: str = "",
    ) -> StartedProcess: ...
    async def wait_for_end(self, key: str, seconds: float | None = None) -> ProcessEnd: ...
    async def kill(self, key: str) -> None: ...
