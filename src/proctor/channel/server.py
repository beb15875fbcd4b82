"""Serve one environment on a control channel: the sessions that are played there, live and parked.

A connection that breaks off leaves its task parked; a client that sends its session id resumes it. Knows
nothing of agents, runs or sockets.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Mapping
from typing import Any

from proctor.channel.capability_servers import CapabilityServers
from proctor.channel.frames import INVALID_REQUEST, NO_TASK, TASK_FAILED
from proctor.channel.served_task import ServedTask
from proctor.env.template_rollout import TemplateRollout
from proctor.env.templates import Environment

log = logging.getLogger("proctor")

PARKED_SECONDS = 3600.0
"""A parked task is dropped after this long."""
MOST_PARKED = 1000
"""Beyond this many, the task parked first is dropped."""
MOST_NAMED = 20
SPEAKS = 1
"""Version of our additions to the protocol."""


class ChannelRefusedError(Exception):
    """A request is refused."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ServedEnvironment:
    """An environment and the sessions that play it."""

    def __init__(self, environment: Environment, token: str | None = None) -> None:
        self.environment = environment
        self.live: set[str] = set()
        """Sessions with a connection."""
        self._token = None if token is None else token.encode()
        self._plays: dict[str, ServedTask] = {}
        """Started tasks that are not graded yet, by session."""
        self._expiries: dict[str, asyncio.TimerHandle] = {}
        """When each parked task is dropped, longest parked first."""
        self._ending: set[asyncio.Task[None]] = set()
        self.capabilities = CapabilityServers(environment, self._playing)
        """Servers for clients that do not speak our additions."""

    @property
    def wants_token(self) -> bool:
        return self._token is not None

    def is_allowed(self, token: object) -> bool:
        if self._token is None:
            return True
        return isinstance(token, str) and hmac.compare_digest(token.encode(errors="replace"), self._token)

    # Sessions

    def new_session(self) -> str:
        session = f"sess-{secrets.token_hex(8)}"
        self.live.add(session)
        return session

    def resume(self, session: str) -> None:
        """Make a parked session a live one."""
        if session in self.live:
            raise ChannelRefusedError(INVALID_REQUEST, f"session {session!r} has a live connection")
        if session not in self._plays:
            raise ChannelRefusedError(INVALID_REQUEST, f"unknown session: {session!r}")
        self._expiries.pop(session).cancel()
        self.live.add(session)

    def park(self, session: str) -> None:
        """The session has no connection any more; its task, if any, waits."""
        self.live.discard(session)
        if session not in self._plays:
            self.capabilities.forget(session)
            return
        loop = asyncio.get_running_loop()
        why = f"was parked for {PARKED_SECONDS:g} s"
        self._expiries[session] = loop.call_later(PARKED_SECONDS, self._give_up, session, why)
        if len(self._expiries) > MOST_PARKED:
            oldest = next(iter(self._expiries))
            self._give_up(oldest, f"was parked longer than {MOST_PARKED} others")

    def _give_up(self, session: str, why: str) -> None:
        log.warning("giving up session %s, which %s", session, why)
        self.end_soon(self.take_task(session))

    # Tasks

    def hold(self, session: str, play: ServedTask) -> None:
        self._plays[session] = play

    def play_of(self, session: str) -> ServedTask:
        play = self._plays.get(session)
        if play is None:
            raise ChannelRefusedError(INVALID_REQUEST, NO_TASK)
        return play

    def take_task(self, session: str) -> ServedTask | None:
        """Remove and return the task of a session."""
        if (expiry := self._expiries.pop(session, None)) is not None:
            expiry.cancel()
            self.capabilities.forget(session)
        return self._plays.pop(session, None)

    def take_or_adopt(self, session: str) -> ServedTask:
        """Remove and return the task of a session, or else the only parked task."""
        play = self.take_task(session) or self.take_task(self._only_parked())
        assert play is not None
        return play

    def _only_parked(self) -> str:
        parked = sorted(self._expiries)
        if not parked:
            raise ChannelRefusedError(INVALID_REQUEST, NO_TASK)
        if len(parked) > 1:
            named = ", ".join([*parked[:MOST_NAMED], *(["…"] if len(parked) > MOST_NAMED else [])])
            raise ChannelRefusedError(
                INVALID_REQUEST,
                f"{len(parked)} parked sessions ({named}); resume one by sending hello with its session_id",
            )
        return parked[0]

    def end_soon(self, play: ServedTask | None) -> None:
        """End a task in the background."""
        if play is not None:
            play.stop()
            ending = asyncio.ensure_future(play.end())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        plays = [self.take_task(session) for session in list(self._plays)]
        await asyncio.gather(*(play.end() for play in plays if play is not None), *self._ending)
        await self.capabilities.close()

    # Description

    def greeting(self, session: str, is_peer: bool) -> Mapping[str, Any]:
        """The answer to a hello; a peer needs no bindings, since it uses tools over the channel."""
        environment = self.environment
        about: dict[str, Any] = {"name": environment.name, "version": environment.version}
        if is_peer:
            about |= {"capacity": environment.capacity, "workspaces": len(environment.workspaces)}
        greeting: dict[str, Any] = {
            "session_id": session,
            "env": about,
            "bindings": [] if is_peer else self.capabilities.bindings(session),
        }
        return {**greeting, "speaks": SPEAKS} if is_peer else greeting

    async def address_of(self, capability: str) -> tuple[str, int]:
        """The address of a capability's server."""
        address = await self.capabilities.address_of(capability)
        if address is None:
            raise ChannelRefusedError(TASK_FAILED, f"there is no capability {capability!r} here")
        return address

    def _playing(self, session: str) -> TemplateRollout | None:
        play = self._plays.get(session)
        return None if play is None else play.rollout

    def list_templates(self) -> list[dict[str, Any]]:
        """Its templates, in the form of the protocol's task list."""
        entries = []
        for template in self.environment.templates.values():
            entry: dict[str, Any] = {
                "id": template.id,
                "description": template.description,
                "args": template.spec.parameters,
            }
            if (schema := template.answer_schema) is not None:
                entry["returns"] = schema
            entries.append(entry)
        return entries
