"""One rollout's container, as its runtime sees it: its address, whether it runs, why it ended.

Knows nothing of how it was created.
"""

from __future__ import annotations

import msgspec

from proctor.errors import EnvError, InfraError
from proctor.runtimes.docker_client import ContainerState, Docker, DockerError

KILLED = 137


class Container(msgspec.Struct, frozen=True):
    """A container by name, and what messages about it mention."""

    docker: Docker
    name: str
    image: str
    port: int
    memory: str | int | None = None
    sandbox: bool = False

    async def published_port(self) -> int:
        try:
            seen = await self.docker.inspect(self.name, self.port)
        except DockerError as error:
            raise InfraError(f"the engine does not report the port of a container: {error}") from error
        if seen is None or not seen[0].running:
            raise await self._end_error(seen and seen[0])
        if seen[1] is None:
            raise InfraError(f"the engine published no port {self.port} of {self.image}")
        return seen[1]

    async def raise_if_ended(self) -> None:
        ended = await self.explain_end()
        if ended is not None:
            raise ended

    async def explain_end(self) -> EnvError | None:
        """Why the container ended; None if it still runs."""
        try:
            seen = await self.docker.inspect(self.name, self.port)
        except DockerError:
            return None  # the engine is busy or away; the caller knows better what went wrong
        if seen is not None and seen[0].running:
            return None
        return await self._end_error(seen and seen[0])

    async def no_answer_error(self, seconds: float) -> InfraError:
        """The container runs, but nothing answers."""
        return InfraError(
            f"no answer on port {self.port} of {self.image} within {seconds:g} s; it must serve on all "
            f"addresses of the container, not only on 127.0.0.1{await self._quote_output()}"
        )

    async def _end_error(self, state: ContainerState | None) -> EnvError:
        if state is None:
            return InfraError(f"another program removed the container of {self.image}")
        quoted = await self._quote_output()
        if state.out_of_memory:
            limit = f" (limit: {self.memory})" if self.memory else ""
            return EnvError(f"the container of {self.image} ran out of memory{limit}; give it more{quoted}")
        if state.code == KILLED:  # from outside, which may not happen again
            return InfraError(f"the container of {self.image} was killed (exit code {state.code}){quoted}")
        return EnvError(f"the container of {self.image} ended with exit code {state.code}{quoted}")

    def _hint(self) -> str:
        if not self.sandbox:
            return "; workspaces in a container need sandbox=True"
        return "; as root bubblewrap does not work there: set user='1000:1000', or USER in the image"

    async def _quote_output(self) -> str:
        printed = await self.docker.read_last_lines(self.name)
        hint = self._hint() if "bubblewrap cannot" in printed else ""
        return f"{hint}; its last lines:\n{printed}" if printed else f"{hint}; it printed nothing"
