"""Two machines on one: network namespaces joined by a cable, each with its own disk, home and /dev/shm.

What they share is what an administrator would install on both: Python with Proctor and Ray.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.waiting import wait_for

RAY = str(Path(sys.executable).with_name("ray"))
PROCTOR = str(Path(sys.executable).with_name("proctor"))
RAY_FOLDER = Path("/tmp/ray")
"""Where Ray keeps its sockets, and looks for the cluster that a machine belongs to."""
STARTING_SECONDS = 60.0
PREFIX = "10.99.7."
MEMORY = str(80_000_000)
TREE = Path(__file__).parents[3]
Environ = Mapping[str, str]
NOTHING: Environ = {}


def note(figure: str) -> None:
    """Show a measured figure with `pytest -s`."""
    sys.stderr.write(f"\n  {figure}\n")


class Machine:
    """A namespace with an address and a disk."""

    def __init__(self, name: str, number: int, folder: Path, group: Path | None) -> None:
        self.name = f"{name}{number}"
        self.address = f"{PREFIX}{number}"
        self.disk = folder / "disk"
        """The same path on each machine, another folder behind it."""
        self.cable = f"{self.name}v"
        self._own = folder / f"disk{number}"
        self._group = group
        self._holder: subprocess.Popen[bytes]

    @property
    def home(self) -> Path:
        return self.disk / "home"

    def plug_in(self) -> None:
        run("ip", "netns", "add", self.name)
        run("ip", "link", "set", self.cable, "netns", self.name)
        run("ip", "-n", self.name, "addr", "add", f"{self.address}/24", "dev", self.cable)
        for device in ("lo", self.cable):
            run("ip", "-n", self.name, "link", "set", device, "up")
        for name in ("home", "tmp", "ray"):
            (self._own / name).mkdir(parents=True, exist_ok=True)
        self.disk.mkdir(exist_ok=True)
        RAY_FOLDER.mkdir(exist_ok=True)
        binds = {self._own / "ray": RAY_FOLDER, self._own: self.disk}
        mounts = "mount -t tmpfs tmpfs /dev/shm"
        mounts += "".join(f" && mount --bind {source} {target}" for source, target in binds.items())
        own = ("ip", "netns", "exec", self.name, "unshare", "--mount", "--propagation", "private")
        held = f"{mounts} && touch {self.disk}/ready && exec sleep infinity"
        self._holder = subprocess.Popen([*own, "sh", "-c", held])
        wait_for((self._own / "ready").exists, 10, "the start of the machine")

    def words(self, *words: str) -> list[str]:
        """The command line that runs words on this machine."""
        inside = ("sh", "-c", f'cd {self.home}; exec "$@"', "sh", *words)
        entered = ["nsenter", f"--target={self._holder.pid}", "--mount", "--net", *inside]
        if self._group is None:
            return entered
        return ["sh", "-c", f'echo $$ > {self._group}/cgroup.procs; exec "$@"', "sh", *entered]

    def environ(self, more: Environ) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"HOME": str(self.home), "TMPDIR": str(self.disk / "tmp"), "NO_COLOR": "1"}
        return {**kept, **own, "RAY_DISABLE_IMPORT_WARNING": "1", **more}

    def start(self, *words: str, environ: Environ = NOTHING) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*words),
            env=self.environ(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def do(
        self, *words: str, seconds: float = 90.0, environ: Environ = NOTHING
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*words, environ=environ)
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)

    def ray_start(self, *words: str, environ: Environ = NOTHING) -> None:
        """Ray's own command, which leaves its processes behind."""
        log = self._own / "ray-start.log"
        with log.open("wb") as file:  # they would keep a pipe open
            own = (f"--node-ip-address={self.address}", f"--object-store-memory={MEMORY}")
            done = subprocess.run(
                self.words(RAY, "start", "--disable-usage-stats", *own, *words),
                env=self.environ(environ),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                timeout=STARTING_SECONDS,
            )
        assert done.returncode == 0, log.read_text()

    def start_head(self, environ: Environ = NOTHING) -> None:
        words = ("--head", "--port=6379", "--num-cpus=1", "--include-dashboard=false")
        self.ray_start(*words, environ=environ)

    def join(self, head: Machine, environ: Environ = NOTHING) -> None:
        self.ray_start(f"--address={head.address}:6379", "--num-cpus=1", environ=environ)

    def processes(self) -> dict[int, str]:
        """What runs here, by process id."""
        listed = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True)
        found = {}
        for pid in map(int, listed.stdout.split()):
            with suppress(OSError):
                words = (
                    Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
                if pid != self._holder.pid and words:
                    found[pid] = words
        return found

    def workers(self) -> list[int]:
        return [pid for pid, words in self.processes().items() if "proctor.workers.remote_process" in words]

    def actors(self) -> list[int]:
        return [pid for pid, words in self.processes().items() if words.startswith("ray::ProcessParent")]

    def find(self, part: str) -> list[int]:
        return [pid for pid, words in self.processes().items() if part in words]

    def kill_everything(self) -> None:
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def cut(self) -> None:
        run("ip", "-n", self.name, "link", "set", self.cable, "down")

    def mend(self) -> None:
        run("ip", "-n", self.name, "link", "set", self.cable, "up")

    def unplug(self) -> None:
        self.kill_everything()
        self._holder.kill()
        self._holder.wait()
        subprocess.run(["ip", "netns", "del", self.name], check=False)


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


def can_have_machines() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("ip", "unshare", "nsenter"))) and Path(RAY).exists()


@contextmanager
def two_machines() -> Iterator[Sequence[Machine]]:
    folder = Path(tempfile.mkdtemp(prefix="pr-", dir="/tmp"))  # Ray's sockets have long names already
    folder.chmod(0o755)
    name = f"pr{secrets.token_hex(3)}n"
    group: Path | None = Path("/sys/fs/cgroup/cpuacct") / name
    try:
        group.mkdir()  # type: ignore[union-attr]
    except OSError:
        group = None
    machines = [Machine(name, number, folder, group) for number in (1, 2)]
    try:
        run("ip", "link", "add", machines[0].cable, "type", "veth", "peer", "name", machines[1].cable)
        for machine in machines:
            machine.plug_in()
        yield machines
    finally:
        for machine in machines:
            with suppress(AttributeError):
                machine.unplug()
        shutil.rmtree(folder, ignore_errors=True)
        if group is not None:
            with suppress(OSError):
                group.rmdir()


def cpu_seconds(machine: Machine) -> float | None:
    """CPU that all machines have used together, or None where the kernel does not count it."""
    group = machine._group
    return None if group is None else int((group / "cpuacct.usage").read_text()) / 1e9


@contextmanager
def model_on(machine: Machine, *words: str) -> Iterator[str]:
    """A model that answers on a machine; its CPU is not counted."""
    inside = ("ip", "netns", "exec", machine.name)
    mock = subprocess.Popen(
        [*inside, sys.executable, "-m", "benchmarks.mock_openai", "--host", machine.address, *words],
        cwd=TREE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert mock.stdout is not None
        yield mock.stdout.readline().strip()
    finally:
        mock.kill()
        mock.communicate()
