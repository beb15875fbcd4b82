"""The example environment as a package, packed on the fly. Knows nothing of HTTP or of databases."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import NamedTuple

from proctor.api.hub import PushForm
from proctor.packages.archive import content_hash, pack
from proctor.projects.requirements import PYPROJECT
from proctor.runner.repository.rollout_package import RolloutPackage, project_text, write_wheel
from proctor.server.hub.push import Push
from proctor.server.hub.sources import read_source
from proctor.server.hub.wheels import read_wheel
from proctor.server.storage.blobs import measure_file

NAME, VERSION = "capitals-example", "1.0.0"
MODULE_FILE = "capitals.py.in"
README = """\
# Capitals

Twelve questions about capital cities: the example evaluation of a new server. The reward is 1 if the reply
names the city.
"""


class ExamplePackage(NamedTuple):
    """A push, and the files of it that are still to be stored."""

    push: Push
    files: tuple[Path, Path]


def pack_example(owner: str, folder: Path) -> ExamplePackage:
    """Pack the environment as a push of its owner's, in a folder. Blocks."""
    package = RolloutPackage(
        name=NAME, version=VERSION, description="Capital cities: the example evaluation of a new server."
    )
    module = resources.files(__package__).joinpath(MODULE_FILE).read_bytes()
    code = [(f"{package.module}/__init__.py", module, False)]
    wheel_file, source_file = folder / package.wheel_name, folder / "source.tar.gz"
    write_wheel(package, code, wheel_file)
    project = project_text(package).encode()
    pack([(PYPROJECT, project, False), ("README.md", README.encode(), False), *code], source_file)
    wheel = read_wheel(wheel_file, package.wheel_name)
    source = read_source(source_file, wheel)
    computed = content_hash(source.digests, wheel.digests)
    push = Push(
        form=PushForm(content_hash=computed, owner=owner),
        wheel_name=package.wheel_name,
        wheel=wheel,
        wheel_blob=measure_file(wheel_file),
        source=source,
        source_blob=measure_file(source_file),
        content_hash=computed,
    )
    return ExamplePackage(push, (wheel_file, source_file))
