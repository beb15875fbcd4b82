"""The backend that the settings name."""

from __future__ import annotations

from proctor.cluster.address import parse_address
from proctor.cluster.options import parse_options
from proctor.config.schema import HERE, EvalConfig
from proctor.workers.backend import OpenBackend
from proctor.workers.frames import StartWorker
from proctor.workers.local_backend import LocalBackend


def resolve_backend(config: EvalConfig, start: StartWorker) -> OpenBackend:
    if config.on == HERE:
        return LocalBackend()
    from proctor.workers.ray_backend import RayBackend

    return RayBackend(parse_address(config.on), parse_options(config.on_args), start)
