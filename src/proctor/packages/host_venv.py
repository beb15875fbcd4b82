"""Virtual environments in which Proctor is not installed but visible, from where it is on this machine.

An environment's own packages come first, so they take precedence. Knows nothing of what is installed in them.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import msgspec

from proctor.errors import InstallError

PTH = "zz_proctor_host.pth"


def make_venv(folder: Path) -> None:
    """A new virtual environment that sees Proctor."""
    make_empty_venv(folder)
    show_host(folder)


def make_empty_venv(folder: Path, python: Path | None = None) -> None:
    """A virtual environment of this Python, or of another one."""
    if python is None:
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        return
    try:
        subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InstallError(f"{python} cannot make a virtual environment: {error}.") from error


def show_host(folder: Path) -> None:
    """Make Proctor visible in a virtual environment."""
    (site_packages(folder) / PTH).write_text("".join(f"{path}\n" for path in host_import_paths()))


def site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def host_paths() -> tuple[str, ...]:
    """The host's paths that every virtual environment needs: Python, Proctor, and Proctor's dependencies."""
    return (str(Path(sys.base_prefix).resolve()), *host_import_paths())


@functools.cache
def host_import_paths() -> tuple[str, ...]:
    """Where Proctor and its dependencies are imported from."""
    beside = [Path(__file__).parents[2], Path(msgspec.__file__ or "").parents[1]]
    named = [Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")]
    return tuple(dict.fromkeys(str(path.resolve()) for path in (*beside, *named)))
