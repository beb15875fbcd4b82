"""Images of Harbor's tasks: built once for each content of `environment/`, or pulled."""

from __future__ import annotations

import asyncio

from proctor.dialects.harbor.task_folder import TaskFolder, hash_folder
from proctor.errors import EnvError, InfraError
from proctor.runtimes.docker_client import Docker, DockerError

REPOSITORY = "proctor-harbor"
PULL_SECONDS = 1800.0


class TaskImages:
    """Finds the image of a task, building it if need be; one build at a time for each content."""

    def __init__(self) -> None:
        self._docker = Docker()
        self._building: dict[str, asyncio.Lock] = {}

    async def find(self, folder: TaskFolder) -> str:
        """The id of the task's image."""
        named = folder.config.environment.docker_image
        tag = named or f"{REPOSITORY}:{await asyncio.to_thread(hash_folder, folder.build_folder)}"
        async with self._building.setdefault(tag, asyncio.Lock()):
            found = await self._docker.image_id(tag)
            if found is None:
                await (self._build(folder, tag) if named is None else self._pull(folder, tag))
                found = await self._docker.image_id(tag)
        if found is None:
            raise InfraError(f"the engine has no image {tag} although it was made")
        return found

    async def _build(self, folder: TaskFolder, tag: str) -> None:
        seconds = folder.config.environment.build_timeout_sec
        words = ("build", "--quiet", "--label", "proctor=1", "--tag", tag, str(folder.build_folder))
        try:
            await self._docker(*words, seconds=seconds)
        except DockerError as error:
            raise EnvError(f"the image of {folder.name} cannot be built: {error}") from error

    async def _pull(self, folder: TaskFolder, image: str) -> None:
        try:
            await self._docker("pull", "--quiet", image, seconds=PULL_SECONDS)
        except DockerError as error:
            raise InfraError(
                f"the image {image} of {folder.name} is not here and cannot be pulled: {error}"
            ) from error
