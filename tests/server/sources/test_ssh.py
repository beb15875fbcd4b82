"""Repositories over ssh: with a deploy key, and only with the server that was there at first."""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.runner.repositories import make_checkout
from tests.server.serving import serving, settings_in
from tests.waiting import wait_for

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
pytestmark = [
    pytest.mark.usefixtures("sandboxes"),
    pytest.mark.xdist_group("repositories"),
    pytest.mark.skipif(not Path(SSHD).exists(), reason="needs sshd"),
]


def make_key(file: Path) -> str:
    file.unlink(missing_ok=True)
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file), check=True)
    return file.read_text()


@contextmanager
def ssh_server(folder: Path, port: int) -> Iterator[None]:
    Path("/run/sshd").mkdir(exist_ok=True)
    options = (
        f"HostKey={folder}/host_key",
        f"AuthorizedKeysFile={folder}/deploy_key.pub",
        *("StrictModes=no", "UsePAM=no", "PidFile=none", "PermitRootLogin=yes", "ListenAddress=127.0.0.1"),
    )
    words = [word for option in options for word in ("-o", option)]
    command = (SSHD, "-D", "-e", "-f", "/dev/null", "-p", str(port), *words)
    log = folder / "sshd.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        wait_for(lambda: "Server listening" in log.read_text(), 20)
        yield
    finally:
        process.terminate()
        process.wait(10)


def test_a_deploy_key_opens_a_repository_and_another_server_in_its_place_is_refused(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "git")
    deploy_key, port = make_key(tmp_path / "deploy_key"), free_port()
    make_key(tmp_path / "host_key")
    settings = settings_in(tmp_path, source_hosts=("127.0.0.1",))
    url = f"ssh://{getpass.getuser()}@127.0.0.1:{port}{checkout.remote}"
    with serving(settings) as server:
        ada = server.user("ada")
        added = ada.post("/sources", {"url": url, "name": "agents", "key": deploy_key})
        sync = f"/sources/{added['source']['id']}/sync"
        with ssh_server(tmp_path, port):
            assert ada.post(sync)["commit_sha"] == checkout.git("rev-parse", "HEAD")
            assert ada.post(sync)["problem"] == ""
        make_key(tmp_path / "host_key")
        with ssh_server(tmp_path, port):
            assert ada("POST", sync, {}).code == "source_denied"
