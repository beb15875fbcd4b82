"""A Ray cluster on this machine whose nodes are as separate as machines: each in network, process and mount
namespaces of its own, with a home and a temporary folder of its own.

This process joins the head's network while the cluster lives, so that servers and commands that a test starts
are on the head's machine.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.interop.ray.machines import RAY
from tests.waiting import wait_for

CLONE_NEWNET = 0x40000000
HEAD_ADDRESS = "10.77.0.1"
PORT = 6379
STARTED = "Ray runtime started"
NODE_SCRIPT = """
mount -t tmpfs tmpfs {temp}
mount -t tmpfs tmpfs /dev/shm
hostname {name}
mount --bind {home}/tmp /tmp/{own}
{further}
exec {command}
"""
"""As the first process of a node: when it is killed, the kernel ends the whole node."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


class RayNode:
    """A machine that has joined the cluster."""

    def __init__(self, cluster: SeparateNodes, number: int) -> None:
        self.cluster = cluster
        self.name = f"{cluster.prefix}n{number}"
        self.address = f"10.77.0.{number + 1}"
        self.home = cluster.folder / f"node{number}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *, cpus: float = 2, further: str = "", words: Sequence[str] = ()) -> None:
        """`further` is shell script that runs on the node before Ray."""
        (self.home / "tmp").mkdir(parents=True, exist_ok=True)
        command = [
            *(RAY, "start", f"--address={HEAD_ADDRESS}:{PORT}", f"--node-ip-address={self.address}"),
            *(f"--num-cpus={cpus}", "--memory=4000000000", "--object-store-memory=100000000"),
            *("--disable-usage-stats", "--block", *words),
        ]
        script = NODE_SCRIPT.format(
            name=self.name,
            temp=self.cluster.temp,
            home=self.home,
            own=self.cluster.node_temp.name,
            further=further,
            command=" ".join(command),
        )
        spaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts")
        with (self.home / "node.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.name}", *spaces, "sh", "-ec", script],
                env=self.cluster.environ(self.home, {"TMPDIR": str(self.cluster.node_temp)}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_joined(self) -> None:
        log = self.home / "node.log"
        wait_for(lambda: STARTED in log.read_text(), 180, f"{self.name} joining")

    def kill(self) -> None:
        """As a power cut would."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(20)
            self.process = None

    def processes(self) -> list[str]:
        """Command lines of what runs there, other than Ray's own."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"HOME={self.home}" not in (place / "environ").read_text(errors="replace").split("\0"):
                    continue
                words = (place / "cmdline").read_text(errors="replace").replace("\0", " ")
                found.append(words)
        return [
            words
            for words in found
            if "proctor" in words.partition(str(self.home))[0] and "ray" not in words[:40]
        ]


class SeparateNodes:
    """A head without CPUs, and nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = f"ph{os.getpid() % 10_000}"
        self.temp = Path(tempfile.mkdtemp(prefix="rh-", dir="/tmp"))
        self.node_temp = Path(tempfile.mkdtemp(prefix="rn-", dir="/tmp"))
        self.nodes = [RayNode(self, 1), RayNode(self, 2)]
        self.head: subprocess.Popen[bytes] | None = None
        self.address = f"ray://{HEAD_ADDRESS}:{PORT}"

    def environ(self, home: Path, further: Mapping[str, str] | None = None) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {**kept, "HOME": str(home), "RAY_raylet_start_wait_time_s": "120", **(further or {})}

    def connect_networks(self) -> None:
        head = f"{self.prefix}h"
        ip("netns", "add", head)
        ip("-n", head, "link", "set", "lo", "up")
        ip("-n", head, "link", "add", "br0", "type", "bridge")
        ip("-n", head, "addr", "add", f"{HEAD_ADDRESS}/24", "dev", "br0")
        ip("-n", head, "link", "set", "br0", "up")
        for node in self.nodes:
            ip("netns", "add", node.name)
            ip("-n", node.name, "link", "set", "lo", "up")
            ip(
                "link",
                "add",
                f"{node.name}a",
                "netns",
                head,
                "type",
                "veth",
                "peer",
                "eth0",
                "netns",
                node.name,
            )
            ip("-n", head, "link", "set", f"{node.name}a", "master", "br0", "up")
            ip("-n", node.name, "addr", "add", f"{node.address}/24", "dev", "eth0")
            ip("-n", node.name, "link", "set", "eth0", "up")

    def start_head(self) -> None:
        home = self.folder / "head"
        home.mkdir(exist_ok=True)
        command = [
            *(RAY, "start", "--head", f"--node-ip-address={HEAD_ADDRESS}", f"--port={PORT}", "--num-cpus=0"),
            *("--include-dashboard=false", "--disable-usage-stats", f"--temp-dir={self.temp}"),
            *("--object-store-memory=100000000", "--block"),
        ]
        with (home / "head.log").open("ab") as log:
            self.head = subprocess.Popen(
                command,
                env=self.environ(home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_for(lambda: STARTED in (home / "head.log").read_text(), 120, "the start of the head")

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
        if self.head is not None:
            end_with_children(self.head)
        for name in (f"{self.prefix}h", *(node.name for node in self.nodes)):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=20, check=False)
        shutil.rmtree(self.temp, ignore_errors=True)
        shutil.rmtree(self.node_temp, ignore_errors=True)


def end_with_children(head: subprocess.Popen[bytes]) -> None:
    """Ray's head starts its parts in process groups of their own."""
    session = os.getsid(head.pid)
    head.terminate()
    with suppress(subprocess.TimeoutExpired):
        head.wait(20)
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ProcessLookupError):
            if os.getsid(int(place.name)) == session:
                os.kill(int(place.name), signal.SIGKILL)
    head.wait(20)


@contextmanager
def network_of(name: str) -> Iterator[None]:
    """This thread, and what it starts, in another network."""
    libc = ctypes.CDLL(None, use_errno=True)
    here, there = Path("/proc/thread-self/ns/net"), Path("/run/netns", name)
    with here.open() as before, there.open() as after:
        if libc.setns(after.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network of {name}")
        try:
            yield
        finally:
            libc.setns(before.fileno(), CLONE_NEWNET)


@contextmanager
def ray_cluster(folder: Path) -> Iterator[SeparateNodes]:
    """The nodes are not started yet."""
    if os.geteuid() != 0 or shutil.which("ip") is None or not Path(RAY).exists():
        pytest.skip("needs root, ip and Ray")
    cluster = SeparateNodes(folder)
    try:
        try:
            cluster.connect_networks()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.decode()}")
        with network_of(f"{cluster.prefix}h"):
            cluster.start_head()
            yield cluster
    finally:
        cluster.close()
