"""Sandboxes and instances of a server in containers of a real Docker engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.server.settings import SandboxLimits
from tests.server.sandboxes.playing import Run, a_run
from tests.server.serving import Served, serving, settings_in

pytestmark = [pytest.mark.interop, pytest.mark.usefixtures("nothing_left")]

Say = Callable[..., str]
SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())
http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


@pytest.fixture
def server(image: str, tmp_path: Path) -> Iterator[Served]:
    limits = SandboxLimits(image=image, memory_mb=256, disk_mb=8, transfer_mb=1, start_seconds=60)
    with serving(settings_in(tmp_path, sandboxes=limits)) as served:
        yield served


@pytest.fixture
def run(server: Served) -> Run:
    return a_run(server, sandboxes=True, instances=True)


def box_of(run: Run) -> str:
    made = run.post("/sandboxes", {"backend": "docker"})
    assert made["status"] == "ready", made
    return f"/sandboxes/{made['id']}"


def said(run: Run, box: str, command: str, **more: Any) -> dict[str, Any]:
    ran: dict[str, Any] = run.post(f"{box}/exec", {"command": command, **more})
    return ran


def test_a_sandbox_is_a_container_with_files_and_commands_and_no_network(run: Run, docker: Say) -> None:
    box = box_of(run)
    run.ok("PUT", f"{box}/files/src/a.txt", "pear")
    assert said(run, box, "cat src/a.txt; echo $FRUIT", variables={"FRUIT": "fig"})["output"] == '"pear"fig\n'
    assert run.get(f"{box}/files/src/a.txt") == '"pear"'
    assert run("GET", f"{box}/files/nothing").code == "no_such_file"
    assert run("PUT", f"{box}/files/big", data=b"x" * (2**20 + 1)).status == 413
    assert run("GET", f"{box}/files/big").code == "no_such_file"
    devices = said(run, box, "cat /proc/net/dev")["output"].splitlines()[2:]
    assert [line.partition(":")[0].strip() for line in devices] == ["lo"]

    run.ok("DELETE", box)

    assert docker("ps", "--all", "--quiet", "--filter", "label=proctor=1") == ""


def test_a_command_that_takes_too_long_is_ended_and_the_files_stay(run: Run) -> None:
    box = box_of(run)
    assert said(run, box, "echo x > kept; sleep 314.5", timeout_seconds=1)["code"] is None
    assert "314.5" not in said(run, box, "cat /proc/[0-9]*/cmdline; cat kept")["output"]
    assert said(run, box, "cat kept")["output"] == "x\n"
    run.ok("DELETE", box)


def test_an_instance_is_reached_without_a_network(run: Run) -> None:
    asked = {
        "backend": "docker",
        "command": ["python3", "server.py"],
        "port": 8000,
        "files": {"server.py": SERVER},
    }
    made = run.post("/instances", asked)
    assert made["status"] == "ready", made
    assert run("GET", made["url"] + "a?b").body == "/a?b"
    run.ok("DELETE", f"/instances/{made['id']}")


def test_an_instance_that_ends_says_why(run: Run) -> None:
    command = ["python3", "-c", "raise SystemExit('no pears')"]
    made = run.post("/instances", {"backend": "docker", "command": command, "port": 8000})
    assert (made["status"], "no pears" in made["message"]) == ("failed", True)


def test_an_image_that_is_not_there_is_told(run: Run) -> None:
    made = run.post("/sandboxes", {"backend": "docker", "image": "nobody/has-this"})
    assert (made["status"], "no image" in made["message"]) == ("failed", True)


def test_a_sandbox_that_fills_the_disk_is_ended(server: Served, run: Run) -> None:
    box = box_of(run)
    said(run, box, "head -c 9000000 /dev/urandom > big")
    server.call(server.platform.sandboxes.sweep)
    assert "disk" in run.get(box)["message"]


def test_containers_end_with_their_run(server: Served, run: Run, docker: Say) -> None:
    box_of(run)
    run.ends()
    server.call(server.platform.sandboxes.sweep)
    end = time.monotonic() + 20
    while docker("ps", "--all", "--quiet", "--filter", "label=proctor=1"):
        assert time.monotonic() < end
