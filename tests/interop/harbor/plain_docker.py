"""Containers for Harbor by the `docker` program alone, for a machine without Docker Compose.

Harbor's own trial, agents and verifier run over it unchanged; only starting, copying and executing are here.
"""

import asyncio
import secrets

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities


async def docker(*words):
    process = await asyncio.create_subprocess_exec(
        "docker", *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


class PlainDocker(BaseEnvironment):
    """One container, with a shell."""

    @staticmethod
    def type():
        return "plain-docker"

    @property
    def capabilities(self):
        return EnvironmentCapabilities(disable_internet=True)

    def _validate_definition(self):
        pass

    async def start(self, force_build):
        self.container = f"harbor-original-{secrets.token_hex(6)}"
        image = self.task_env_config.docker_image
        if image is None:
            code, out, err = await docker("build", "--quiet", str(self.environment_dir))
            assert code == 0, err
            image = out.strip()
        network = "none" if self._network_disabled else "bridge"
        variables = [f"--env={key}={value}" for key, value in self._startup_env().items()]
        words = ("run", "--detach", "--name", self.container, "--network", network, *variables, image)
        code, _, err = await docker(*words, "sh", "-c", "sleep infinity")
        assert code == 0, err
        await docker(
            "exec", self.container, "mkdir", "-p", "/logs/agent", "/logs/verifier", "/logs/artifacts"
        )

    async def stop(self, delete):
        await docker("rm", "--force", self.container)

    async def upload_file(self, source_path, target_path):
        await docker("cp", str(source_path), f"{self.container}:{target_path}")

    async def upload_dir(self, source_dir, target_dir):
        await docker("exec", self.container, "mkdir", "-p", target_dir)
        await docker("cp", f"{source_dir}/.", f"{self.container}:{target_dir}")

    async def download_file(self, source_path, target_path):
        await docker("cp", f"{self.container}:{source_path}", str(target_path))

    async def download_dir(self, source_dir, target_dir):
        await docker("cp", f"{self.container}:{source_dir}/.", str(target_dir))

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None):
        words = ["exec"]
        folder = cwd or self.task_env_config.workdir
        if folder:
            words += ["--workdir", folder]
        words += [f"--env={key}={value}" for key, value in (self._merge_env(env) or {}).items()]
        code, out, err = await docker(*words, self.container, "bash", "-c", command)
        return ExecResult(stdout=out, stderr=err, return_code=code)
