"""Build the command line of a sandbox: what bubblewrap shows, hides and limits.

Nothing is inherited and nothing is guessed: a path that is not named here does not exist inside. Pure; knows
nothing of processes, and never inspects the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

WORKSPACE_PATH = "/workspace"
"""Path of the rollout's folder inside the sandbox."""
MEGABYTE = 2**20
SOCKET_PATH = "/run/proctor/endpoint"
FRESH_PROC = 'mount -n -t proc -o nosuid,nodev,noexec proc /proc; exec "$@"'
"""The kernel lets an ordinary user mount /proc in a sandbox of its own only where an unmasked /proc is
visible, and bubblewrap masks parts of root's. The unprivileged user that commands run as cannot read the
unmasked parts either."""
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
"""Never start a command whose parent was killed. bubblewrap asks the kernel to die with its parent, but does
not check whether the parent is still alive. So the parent releases the command here, once the first process
inside sleeps and has therefore asked. Opening a FIFO for reading blocks until there is a writer; opening it
for both does not."""
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
"""The parts of /etc that programs need and that hold no secrets; the rest of /etc/ssl may hold private
keys."""
NETWORK_ETC = ("resolv.conf", "services", "protocols")
CARRIED = "_PROCTOR_CARRIED_"
"""Begins the name under which a command's variable waits until the command is started. Under its own name it
would steer what is run before: PATH, LD_PRELOAD and the like would let a command's files run as root."""
CANNOT_ENTER = 126
STEP_DOWN_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


class SandboxUser(NamedTuple):
    """The user that commands run as inside."""

    uid: int = 1000
    gid: int = 1000
    steps_down: bool = False
    """We are root: commands get a user id of their own on this machine, not just another name for root's."""


class Cover(NamedTuple):
    """A path that must appear empty inside."""

    path: str
    is_folder: bool = True


class Forward(NamedTuple):
    """A port on the sandbox's own loopback that is forwarded to a Unix socket outside."""

    port: int
    socket: str
    python: str
    """An interpreter that is visible inside."""
    script: str
    """The source of support/sandbox_bridge.py."""
    inner_path: str = SOCKET_PATH
    """Path of the socket inside."""


@dataclass(frozen=True)
class CommandLimits:
    """What one command may use; None sets no limit."""

    memory_mb: int | None = None
    processes: int | None = 1024
    file_mb: int | None = 2048
    cpu_seconds: int | None = None
    data_mb: int | None = None
    """Memory that a process may write. Unlike `memory_mb`, which counts address space, it suits runtimes that
    reserve far more than they use, such as those of JavaScript and Java."""
    disk_mb: int | None = None
    """What the folder may occupy, with all temporary files; measured, not enforced by the kernel."""

    def prlimit_command(self) -> list[str]:
        bounds = {
            "as": self.memory_mb and self.memory_mb * MEGABYTE,
            "data": self.data_mb and self.data_mb * MEGABYTE,
            "nproc": self.processes,
            "fsize": self.file_mb and self.file_mb * MEGABYTE,
            "cpu": self.cpu_seconds and f"{self.cpu_seconds}:{self.cpu_seconds + 1}",  # first SIGXCPU
        }
        options = [f"--{name}={value}" for name, value in bounds.items() if value]
        return ["prlimit", "--core=0", *options, "--"]


@dataclass(frozen=True)
class SandboxConfig:
    """Everything that confines a rollout's commands."""

    folder: Path
    etc: Path
    """Holds the `passwd`, `group` and `hosts` that commands see."""
    scratch: Path
    """Holds `tmp` and `shm`: on disk, because nothing would limit them in memory."""
    user: SandboxUser = field(default_factory=SandboxUser)
    network: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    system: Mapping[str, str | None] = field(default_factory=dict)
    """The machine's program folders: the target of each that is a link, None for a real folder."""
    mounts: Sequence[str] = ()
    """Further paths to mount read-only."""
    writable: Mapping[str, str] = field(default_factory=dict)
    """Further folders to mount writable, and their paths inside."""
    covers: Sequence[Cover] = ()
    limits: CommandLimits = field(default_factory=CommandLimits)
    nests: bool = False
    """Whether commands can create sandboxes of their own."""
    home: str = WORKSPACE_PATH
    """HOME, as commands see it."""
    working_folder: str = WORKSPACE_PATH
    """Where commands start, as they see it."""
    read_only: Mapping[str, str] = field(default_factory=dict)
    """Further folders to mount read-only, and their paths inside."""


def build_bwrap_command(
    bwrap: str,
    config: SandboxConfig,
    command: Sequence[str],
    *,
    status: int,
    block: int,
    variables: int,
    keep_open: int,
    barrier: Path,
    forwards: Sequence[Forward] = (),
) -> list[str]:
    """The whole command line, with bubblewrap's own file descriptors. It reads `variable_arguments` from the
    descriptor `variables`, because every user can read command lines. `keep_open` stays open for as long as
    it runs."""
    return [
        *(bwrap, "--json-status-fd", str(status), "--block-fd", str(block)),
        *("--args", str(variables), "--sync-fd", str(keep_open)),
        *namespace_arguments(config),
        *mount_arguments(config),
        *("--ro-bind", str(barrier), BARRIER_PATH),
        *(word for forward in forwards for word in ("--bind", forward.socket, forward.inner_path)),
        *("--remount-ro", "/", "--"),
        *(("sh", "-c", FRESH_PROC, "sh") if config.nests and config.user.steps_down else ()),
        *("sh", "-c", BARRIER_SCRIPT, BARRIER_PATH),
        *(word for forward in forwards for word in forward_command(forward, config.user)),
        *(step_down_command(config.user) if config.user.steps_down else ()),
        *config.limits.prlimit_command(),
        *last_step_command(len(config.variables), config.working_folder),
        *command,
    ]


def namespace_arguments(config: SandboxConfig) -> Iterator[str]:
    yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--die-with-parent", "--new-session", "--hostname", "workspace")
    if not config.network:
        yield "--unshare-net"
    if not config.user.steps_down:
        uid, gid = str(config.user.uid), str(config.user.gid)
        yield from ("--unshare-user", "--uid", uid, "--gid", gid)
    yield from ("--cap-drop", "ALL")
    if config.user.steps_down:
        for capability in (*STEP_DOWN_CAPABILITIES, *(("CAP_SYS_ADMIN",) if config.nests else ())):
            yield from ("--cap-add", capability)


def variable_arguments(config: SandboxConfig) -> Iterator[str]:
    yield "--clearenv"
    own = {"PATH": PATH, "HOME": config.home, "LANG": "C.UTF-8", "TERM": "xterm"}
    given = (f"{name}={value}" for name, value in config.variables.items())
    carried = {f"{CARRIED}{number}": text for number, text in enumerate(given)}
    for name, value in {**own, **carried}.items():
        yield from ("--setenv", name, value)


def last_step_command(count: int, working_folder: str) -> Iterator[str]:
    """Enter the folder and give the carried variables their own names, as the last step before the command:
    by then the shell has no more rights than the command, and the same limits. bubblewrap itself must not
    enter a folder that an earlier command may have closed, or it could start nothing there any more."""
    names = [f"{CARRIED}{number}" for number in range(count)]
    exports = "".join(f'command export "${name}" 2>/dev/null\n' for name in names)
    unset = f"unset {' '.join(names)}\n" if names else ""
    enter = f'cd "$1" || exit {CANNOT_ENTER}\nshift\n'
    yield from ("sh", "-c", f'{enter}{exports}{unset}exec "$@"', "sh", working_folder)


def mount_arguments(config: SandboxConfig) -> Iterator[str]:
    """What is visible. A later argument hides an earlier one."""
    yield from parent_folder_arguments("/etc/ssl", "/etc/pki", "/run/proctor")
    for path, target in config.system.items():
        yield from ("--ro-bind", path, path) if target is None else ("--symlink", target, path)
    for name in (*TRUSTED_ETC, *(NETWORK_ETC if config.network else ())):
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for name in ("passwd", "group", "hosts"):
        yield from ("--ro-bind", str(config.etc / name), f"/etc/{name}")
    yield from cover_arguments(cover for cover in config.covers if not is_below(cover.path, config.mounts))
    yield from ("--proc", "/proc", "--dev", "/dev", "--bind", str(config.scratch / "shm"), "/dev/shm")
    yield from ("--remount-ro", "/dev", "--bind", str(config.scratch / "tmp"), "/tmp")
    for path in config.mounts:
        yield from parent_folder_arguments(str(Path(path).parent))
        yield from ("--ro-bind", path, path)
    yield from cover_arguments(cover for cover in config.covers if is_below(cover.path, config.mounts))
    for path, inside in config.writable.items():
        yield from parent_folder_arguments(str(Path(inside).parent))
        yield from ("--bind", path, inside)
    for path, inside in config.read_only.items():
        yield from parent_folder_arguments(str(Path(inside).parent))
        yield from ("--ro-bind", path, inside)
    yield from ("--bind", str(config.folder), WORKSPACE_PATH, "--chdir", "/")


def parent_folder_arguments(*paths: str) -> Iterator[str]:
    """The parents of other folders; bubblewrap would create some of them readable by root alone."""
    ways = (path for last in paths for path in (*reversed(Path(last).parents[:-1]), Path(last)))
    for path in dict.fromkeys(ways):
        if path != Path("/"):
            yield from ("--dir", str(path))


def cover_arguments(covers: Iterator[Cover]) -> Iterator[str]:
    for path, is_folder in covers:
        yield from ("--tmpfs", path, "--remount-ro", path) if is_folder else ("--ro-bind", "/dev/null", path)


def is_below(path: str, folders: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def forward_command(forward: Forward, user: SandboxUser) -> Iterator[str]:
    yield from (forward.python, "-IS", "-c", forward.script, "out", str(forward.port), forward.inner_path)
    yield from ("drop" if user.steps_down else "keep", "--")


def step_down_command(user: SandboxUser) -> Iterator[str]:
    yield from ("setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups")
    yield from ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")
