"""One container of a rollout, as its runtime sees it: where it is reached, whether it lives, why it does not.

Knows nothing of how it was made.
"""

from __future__ import annotations

import msgspec

from proctor.errors import EnvError, InfraError
from proctor.runtimes.docker_client import ContainerState, Docker, DockerError

KILLED = 137


class Container(msgspec.Struct, frozen=True):
    """A container by its name, and what a message about it should say."""

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
            raise InfraError(f"the engine does not tell the port of a container: {error}") from error
        if seen is None or not seen[0].running:
            raise await self._ended(seen and seen[0])
        if seen[1] is None:
            raise InfraError(f"the engine published no port {self.port} of {self.image}")
        return seen[1]

    async def raise_if_ended(self) -> None:
        ended = await self.explain_end()
        if ended is not None:
            raise ended

    async def explain_end(self) -> EnvError | None:
        """Why the container is no longer there; None if it is."""
        try:
            seen = await self.docker.inspect(self.name, self.port)
        except DockerError:
            return None  # the engine is busy or away: what went wrong is better told by who asked
        if seen is not None and seen[0].running:
            return None
        return await self._ended(seen and seen[0])

    async def no_answer_error(self, seconds: float) -> InfraError:
        """It runs, and nobody answers."""
        return InfraError(
            f"nobody answered on port {self.port} of {self.image} within {seconds:g} s; it must serve on all "
            f"addresses of the container, not only on 127.0.0.1{await self._quote_output()}"
        )

    async def _ended(self, state: ContainerState | None) -> EnvError:
        if state is None:
            return InfraError(f"the container of {self.image} was removed by somebody else")
        quoted = await self._quote_output()
        if state.out_of_memory:
            limit = f" of {self.memory}" if self.memory else ""
            return EnvError(f"the container of {self.image} used up its memory{limit}; give it more{quoted}")
        if state.code == KILLED:  # by somebody else, who may not do it again
            return InfraError(f"the container of {self.image} was killed (exit code {state.code}){quoted}")
        return EnvError(f"the container of {self.image} ended with exit code {state.code}{quoted}")

    def _hint(self) -> str:
        if not self.sandbox:
            return "; workspaces in a container need sandbox=True"
        return "; as root bubblewrap does not work there: set user='1000:1000', or USER in the image"

    async def _quote_output(self) -> str:
        said = await self.docker.last_words(self.name)
        hint = self._hint() if "bubblewrap cannot" in said else ""
        return f"{hint}; its last lines:\n{said}" if said else f"{hint}; it printed nothing"
