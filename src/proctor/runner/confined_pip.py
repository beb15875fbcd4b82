"""pip as a host runs it outside the sandbox, to fetch wheels: it cannot start processes, so it cannot build
anything.

A script for the interpreter of a virtual environment that is still empty; it imports nothing of Proctor.
Wheels are data here: pip reads their metadata and unpacks nothing. A source distribution, a checkout or a
folder would have to be built by its author's code, which takes a process, and the interpreter refuses to
start one. A direct reference (`name @ url`) would make the host fetch from an address that the author chose,
so it ends the whole attempt unless the operator allowed that host. Knows nothing of environments.

    python -I confined_pip.py '{"memory_bytes": …}' install --dry-run …
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any
from urllib.parse import urlsplit

from pip._internal.cli.main import main as run_pip
from pip._vendor.packaging.requirements import Requirement

PR_SET_PDEATHSIG = 1
PROCESS_EVENTS = frozenset(
    {
        "subprocess.Popen",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "pty.spawn",
    }
)
LONGEST_REFERENCE = 300


def die_with(parent: int) -> None:
    """Be killed together with the parent process, even if that is dead already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def limit(memory_bytes: int, file_bytes: int, cpu_seconds: int) -> None:
    """An index or a wheel that never ends, or unpacks without bounds, harms only this process."""
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def refuse_processes(event: str, _: Any) -> None:
    if event in PROCESS_EVENTS:
        raise PermissionError(f"no process may be started while packages are fetched ({event})")


def refuse_direct_references(allowed_hosts: frozenset[str]) -> None:
    """pip reads every requirement, wherever it comes from, with this one class."""
    read = Requirement.__init__

    def read_and_check(self: Requirement, requirement_string: str) -> None:
        read(self, requirement_string)
        if self.url and not is_allowed(self.url, allowed_hosts):
            end_for(f"{self.name} @ {self.url}", self.name)

    Requirement.__init__ = read_and_check  # type: ignore[method-assign]


def is_allowed(url: str, allowed_hosts: frozenset[str]) -> bool:
    """Wheels only: anything else would have to be built."""
    parts = urlsplit(url)
    return (
        parts.scheme in ("http", "https")
        and parts.hostname in allowed_hosts
        and parts.path.lower().endswith(".whl")
    )


def end_for(reference: str, name: str) -> None:
    """Exit at once: after an exception pip might try another version."""
    sys.stdout.flush()
    message = (
        f"ERROR: {reference[:LONGEST_REFERENCE]!a} is a direct reference, and this host installs from "
        f"its own indexes only; require {name!a} by name and version, or ask the operator to allow "
        f"wheels from that address with --allow-direct-host.\n"
    )
    os.write(2, message.encode())
    os._exit(1)


def main() -> int:
    settings = json.loads(sys.argv[1])
    die_with(settings["parent"])
    limit(settings["memory_bytes"], settings["file_bytes"], settings["cpu_seconds"])
    sys.path[:0] = settings["path"]
    refuse_direct_references(frozenset(settings["direct_hosts"]))

    sys.addaudithook(refuse_processes)
    return run_pip(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
