"""The page for newcomers, typed word for word on two machines."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.interop.ray.machines import TREE, can_have_machines, model_on, two_machines

pytestmark = pytest.mark.interop

BLOCK = re.compile(r"^```sh (first|second)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_a_newcomer_with_two_machines_ends_with_a_run_on_both() -> None:
    if not can_have_machines():
        pytest.skip("needs root, iproute2 and Ray (tests/interop/install.sh)")
    typed = [
        (where, line)
        for where, block in BLOCK.findall((TREE / "docs" / "clusters.md").read_text())
        for line in block.splitlines()
    ]
    assert len(typed) == 6
    with two_machines() as (first, second), model_on(first, "--answer", "4") as url:
        for machine in (first, second):
            (machine._own / "home" / "tmp").mkdir()
        output = ""
        for where, line in typed:
            machine = first if where == "first" else second
            line = line.replace("-m MODEL -b URL", f"-m m -k '' -b {url}")
            if line.startswith("ray "):  # the namespaces share one machine's processors and memory
                line += " --num-cpus=1 --object-store-memory=80000000"
                line += f" --node-ip-address={second.address}" if machine is second else ""
            programs = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
            environ = {"PATH": programs, "XDG_STATE_HOME": str(machine.home / "state")}
            done = machine.do("sh", "-c", f"{line} > typed.log 2>&1", environ=environ)
            output = (machine._own / "home" / "typed.log").read_text()
            assert done.returncode == 0, f"{line}: {output}"
        assert "20/20" in output.replace(" ", ""), output
        assert len(list((second._own / "home").rglob("bundles/*/sums"))) == 1, "the second machine played"
