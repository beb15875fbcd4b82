"""Run tasks with Harbor itself; prints the rewards by task as one line of JSON. Runs in its own Python.

python original.py FOLDER AGENT
"""

import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

sys.path.insert(0, str(Path(__file__).parent))


def environment():
    """Harbor's own, if this machine has what that needs."""
    has_compose = subprocess.run(["docker", "compose", "version"], capture_output=True).returncode == 0
    return EnvironmentConfig() if has_compose else EnvironmentConfig(import_path="plain_docker:PlainDocker")


async def play(folder, agent, out):
    config = TrialConfig(
        task=TaskConfig(path=folder),
        trials_dir=Path(out),
        agent=AgentConfig(name=agent),
        environment=environment(),
    )
    trial = await Trial.create(config)
    result = await trial.run()
    verified = result.verifier_result
    return {
        "rewards": verified.rewards if verified else None,
        "exception": result.exception_info.exception_type if result.exception_info else None,
    }


async def main(root, agent):
    with tempfile.TemporaryDirectory() as out:
        found = {
            file.parent.name: await play(file.parent, agent, out)
            for file in sorted(Path(root).glob("*/task.toml"))
        }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
