"""Runs' own endpoints: found in a run's settings, and opened with the run's secrets.

Knows nothing of accounts: a run's owner pays for its own endpoint directly.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, select

from proctor.config.endpoints import Endpoint
from proctor.config.providers import CHAT as CHAT_CLIENT
from proctor.errors import ConfigError
from proctor.server.db.tables import runs
from proctor.server.gateway.models import REQUEST_SECONDS
from proctor.server.gateway.upstreams import Upstream
from proctor.server.platform import Platform

MOST_KNOWN_RUNS = 4096


class OwnEndpoint(msgspec.Struct, frozen=True):
    """A run's own endpoint, from the run's settings."""

    model: str
    url: str
    key_var: str | None
    client_type: str
    headers: Mapping[str, str]


class OwnEndpoints:
    """The endpoints that runs brought themselves."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._known: dict[str, OwnEndpoint | None] = {}

    async def find(self, run_id: str) -> OwnEndpoint | None:
        if run_id not in self._known:
            if len(self._known) > MOST_KNOWN_RUNS:
                self._known.clear()
            self._known[run_id] = await self._platform.database.read(load_own_endpoint, run_id)
        return self._known[run_id]

    async def open(self, run_id: str, own: OwnEndpoint) -> Upstream:
        platform = self._platform
        if opened := platform.upstreams.own(run_id):
            return opened
        endpoint = Endpoint(
            model=own.model,
            client_type=own.client_type,
            url=own.url,
            key_var=own.key_var,
            headers=own.headers,
            request_seconds=REQUEST_SECONDS,
        )
        variables = await platform.runs.variables(run_id)
        if own.key_var and not variables.get(own.key_var):
            raise ConfigError(
                f"The run has no secret {own.key_var}, which api_key_var names; add it and start again."
            )
        return await platform.upstreams.open_own(run_id, endpoint, variables)


def load_own_endpoint(connection: Connection, run_id: str) -> OwnEndpoint | None:
    run = connection.execute(select(runs.c.model, runs.c.settings).where(runs.c.id == run_id)).one()
    url = run.settings.get("api_base_url")
    if not url:
        return None
    return OwnEndpoint(
        model=run.model,
        url=url.rstrip("/"),
        key_var=run.settings.get("api_key_var") or None,
        client_type=run.settings.get("api_client_type") or CHAT_CLIENT,
        headers=run.settings.get("headers") or {},
    )
