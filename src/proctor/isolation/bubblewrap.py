"""The command line of a sandbox: what bubblewrap is told to show, to hide and to limit.

Nothing is inherited and nothing is guessed: what is not named here does not exist inside. Pure; knows nothing
of processes, and asks the machine nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

WORKSPACE_PATH = "/workspace"
"""Where the rollout's folder lies in the sandbox."""
MEGABYTE = 2**20
SOCKET_PATH = "/run/proctor/door"
FRESH_PROC = 'mount -n -t proc -o nosuid,nodev,noexec proc /proc; exec "$@"'
"""The kernel lets an ordinary user mount /proc for a sandbox of its own only where one is seen whole, and
bubblewrap covers parts of root's. To the user who is stepped down to, the whole is closed as well."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BARRIER_PATH = "/run/proctor/gate"
BARRIER_SCRIPT = """
until read -r first </proc/1/stat && case $first in *") S "*) ;; *) false ;; esac; do :; done
exec 9<>"$0/go" 8<"$0/go" 9>&-
echo 1<>"$0/ready"
read -r go <&8 || exit 1
exec 8<&-
exec "$@"
"""
"""Nothing is begun for a parent that was killed. bubblewrap asks the kernel to die with its parent, but never
whether that still lives. So its parent says the word here, once the first process inside sleeps and therefore
has asked. Who opens a FIFO for reading alone waits for a writer; who has it open for both does not."""
TRUSTED_ETC = (
    "alternatives",
    "ca-certificates",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "pki/ca-trust",
    "pki/tls",
    "ssl/certs",
    "ssl/openssl.cnf",
)
"""Of /etc: what programs need and nobody keeps a secret in; /etc/ssl as a whole may hold private keys."""
NETWORK_ETC = ("resolv.conf", "services", "protocols")
CARRIED = "_PROCTOR_CARRIED_"
"""Begins the name under which a command's variable waits until the command is started. Under its own name it
would steer what is run before: PATH, LD_PRELOAD and the like would let a command's files run as root."""
STEP_DOWN_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


class SandboxUser(NamedTuple):
    """Who the commands are inside."""

    uid: int = 1000
    gid: int = 1000
    steps_down: bool = False
    """We are root: commands get a user id of their own on this machine, not only a name for root's."""


class Cover(NamedTuple):
    """A path inside that must show nothing."""

    path: str
    is_folder: bool = True


class Forward(NamedTuple):
    """A port of the sandbox's own loopback that leads to a Unix socket outside."""

    port: int
    socket: str
    python: str
    """An interpreter that can be seen from inside."""
    script: str
    """The text of forward.py."""
    door: str = SOCKET_PATH
    """Where the socket lies inside."""


@dataclass(frozen=True)
class CommandLimits:
    """What one command may use; None is no limit of ours."""

    memory_mb: int | None = None
    processes: int | None = 1024
    file_mb: int | None = 2048
    cpu_seconds: int | None = None

    def words(self) -> list[str]:
        bounds = {
            "as": self.memory_mb and self.memory_mb * MEGABYTE,
            "nproc": self.processes,
            "fsize": self.file_mb and self.file_mb * MEGABYTE,
            "cpu": self.cpu_seconds and f"{self.cpu_seconds}:{self.cpu_seconds + 1}",  # first SIGXCPU
        }
        given = [f"--{name}={value}" for name, value in bounds.items() if value]
        return ["prlimit", "--core=0", *given, "--"]


@dataclass(frozen=True)
class SandboxConfig:
    """Everything that stands around a rollout's commands."""

    folder: Path
    etc: Path
    """Holds `passwd`, `group` and `hosts` as they are to be seen inside."""
    scratch: Path
    """Holds `tmp` and `shm`: on disk, since what is in memory would have no limit."""
    user: SandboxUser = field(default_factory=SandboxUser)
    network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    system: Mapping[str, str | None] = field(default_factory=dict)
    """The machine's program folders: where each points to, or None if it is a folder of its own."""
    mounts: Sequence[str] = ()
    """Further paths to be seen, read-only."""
    writable: Mapping[str, str] = field(default_factory=dict)
    """Further folders to write to, and where they lie inside."""
    covers: Sequence[Cover] = ()
    limits: CommandLimits = field(default_factory=CommandLimits)
    nests: bool = False
    """Commands can make sandboxes of their own."""


def build_bwrap_command(
    bwrap: str,
    walls: SandboxConfig,
    command: Sequence[str],
    *,
    status: int,
    block: int,
    variables: int,
    kept: int,
    gate: Path,
    forwards: Sequence[Forward] = (),
) -> list[str]:
    """The whole command line, with file descriptors of bubblewrap's own. From `variables` it reads its
    `variable_words`: command lines can be read by everybody. `kept` is kept open as long as it runs."""
    return [
        *(bwrap, "--json-status-fd", str(status), "--block-fd", str(block)),
        *("--args", str(variables), "--sync-fd", str(kept)),
        *namespace_arguments(walls),
        *mount_arguments(walls),
        *("--ro-bind", str(gate), BARRIER_PATH),
        *(word for forward in forwards for word in ("--bind", forward.socket, forward.door)),
        *("--remount-ro", "/", "--"),
        *(("sh", "-c", FRESH_PROC, "sh") if walls.nests and walls.user.steps_down else ()),
        *("sh", "-c", BARRIER_SCRIPT, BARRIER_PATH),
        *(word for forward in forwards for word in forward_command(forward, walls.user)),
        *(step_down_command(walls.user) if walls.user.steps_down else ()),
        *walls.limits.words(),
        *adopt_words(len(walls.variables)),
        *command,
    ]


def namespace_arguments(walls: SandboxConfig) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "workspace")
    if not walls.network:
        yield "--unshare-net"
    if not walls.user.steps_down:
        uid, gid = str(walls.user.uid), str(walls.user.gid)
        yield from ("--unshare-user", "--uid", uid, "--gid", gid)
    yield from ("--cap-drop", "ALL")
    if walls.user.steps_down:
        for capability in (*STEP_DOWN_CAPABILITIES, *(("CAP_SYS_ADMIN",) if walls.nests else ())):
            yield from ("--cap-add", capability)


def variable_arguments(walls: SandboxConfig) -> Iterator[str]:
    yield "--clearenv"
    own = {"PATH": PATH, "HOME": WORKSPACE_PATH, "LANG": "C.UTF-8", "TERM": "xterm"}
    given = (f"{name}={value}" for name, value in walls.variables.items())
    carried = {f"{CARRIED}{number}": text for number, text in enumerate(given)}
    for name, value in {**own, **carried}.items():
        yield from ("--setenv", name, value)


def adopt_words(count: int) -> Iterator[str]:
    """Give so many carried variables their own names, as the last thing before the command: by then it has
    no more rights than the command has, and is held to its limits."""
    if count:
        names = [f"{CARRIED}{number}" for number in range(count)]
        exports = "".join(f'command export "${name}" 2>/dev/null\n' for name in names)
        yield from ("sh", "-c", f'{exports}unset {" ".join(names)}\nexec "$@"', "sh")


def mount_arguments(walls: SandboxConfig) -> Iterator[str]:
    """What can be seen. A later word covers an earlier one."""
    yield from parent_folder_arguments("/etc/ssl", "/etc/pki", "/run/proctor")
    for path, target in walls.system.items():
        yield from ("--ro-bind", path, path) if target is None else ("--symlink", target, path)
    for name in (*TRUSTED_ETC, *(NETWORK_ETC if walls.network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in ("passwd", "group", "hosts"):
        yield from ("--ro-bind", str(walls.etc / name), f"/etc/{name}")
    yield from cover_arguments(cover for cover in walls.covers if not is_below(cover.path, walls.mounts))
    yield from ("--proc", "/proc", "--dev", "/dev", "--bind", str(walls.scratch / "shm"), "/dev/shm")
    yield from ("--remount-ro", "/dev", "--bind", str(walls.scratch / "tmp"), "/tmp")
    for path in walls.mounts:
        yield from parent_folder_arguments(str(Path(path).parent))
        yield from ("--ro-bind", path, path)
    yield from cover_arguments(cover for cover in walls.covers if is_below(cover.path, walls.mounts))
    for path, inside in walls.writable.items():
        yield from parent_folder_arguments(str(Path(inside).parent))
        yield from ("--bind", path, inside)
    yield from ("--bind", str(walls.folder), WORKSPACE_PATH, "--chdir", WORKSPACE_PATH)


def parent_folder_arguments(*paths: str) -> Iterator[str]:
    """Folders on the way to others; made by bubblewrap in passing, some would be shut to all but root."""
    ways = (path for last in paths for path in (*reversed(Path(last).parents[:-1]), Path(last)))
    for path in dict.fromkeys(ways):
        if path != Path("/"):
            yield from ("--dir", str(path))


def cover_arguments(covers: Iterator[Cover]) -> Iterator[str]:
    for path, is_folder in covers:
        yield from ("--tmpfs", path, "--remount-ro", path) if is_folder else ("--ro-bind", "/dev/null", path)


def is_below(path: str, places: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(place) for place in places)


def forward_command(forward: Forward, user: SandboxUser) -> Iterator[str]:
    yield from (forward.python, "-IS", "-c", forward.script, str(forward.port), forward.door)
    yield from ("drop" if user.steps_down else "keep", "--")


def step_down_command(user: SandboxUser) -> Iterator[str]:
    yield from ("setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups")
    yield from ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")
