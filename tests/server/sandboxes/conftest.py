"""One server for many tests: what each of them makes is its own run's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from proctor.server.settings import SandboxLimits
from tests.server.sandboxes.playing import Run, a_run
from tests.server.serving import Served, serving, settings_in

LIMITS = SandboxLimits(at_once=3, memory_mb=512, processes=64, disk_mb=4, transfer_mb=1, start_seconds=15)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap here")
    with serving(settings_in(tmp_path_factory.mktemp("places"), sandboxes=LIMITS)) as served:
        yield served


@pytest.fixture
def run(shared: Served) -> Iterator[Run]:
    """A run that was granted everything."""
    made = a_run(shared, sandboxes=True, instances=True)
    yield made
    shared.call(shared.platform.sandboxes.reap, made.id)
