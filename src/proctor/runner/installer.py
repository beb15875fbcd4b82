"""How packages are fetched and installed on this machine: which pip there is, and how its operator set it up.

The operator's indexes, certificates, proxies and credentials are for fetching, which happens outside the
walls and executes nothing that was fetched. Installing happens behind walls and is told of none of them.
Knows nothing of environments.
"""

from __future__ import annotations

import ast
import asyncio
import ensurepip
import importlib.util
import os
import sys
from pathlib import Path

from proctor.errors import InstallError

SECTIONS = ("global", "install", ":env:")
"""Of pip's configuration, those that concern `pip install`; a later one stands above an earlier one."""
OWN_SETTINGS = (
    *("cache-dir", "config-file", "dry-run", "log", "no-cache-dir", "no-deps", "prefix", "python", "quiet"),
    *("report", "require-hashes", "require-virtualenv", "requirement", "root", "src", "target", "user"),
)
"""Settings that would send it somewhere else, or make it do something else, than what it is run for."""
CONFIG_SECONDS = 30.0
FORWARDED_VARIABLES = (
    *("HOME", "PATH", "LANG", "LC_ALL"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)


ALWAYS = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PIP_PROGRESS_BAR": "off",
    "PIP_ROOT_USER_ACTION": "ignore",
}
INSTALL_VARIABLES = {**ALWAYS, "PIP_NO_CACHE_DIR": "1", "PIP_NO_INDEX": "1"}
"""Of pip behind walls: it is given files, and has nowhere to look for others."""


async def fetch_variables(temporary: Path, cache: Path) -> dict[str, str]:
    """The environment variables of pip where it fetches, credentials among them."""
    settings = await load_pip_settings()
    variables = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    passed_on = {name: os.environ[name] for name in FORWARDED_VARIABLES if name in os.environ}
    own = {"PIP_CACHE_DIR": str(cache), "TMPDIR": str(temporary)}
    return {**passed_on, **variables, **ALWAYS, **own}


def find_pip() -> tuple[str, ...]:
    """How pip is run: the one that is installed beside us, or else the one that comes with Python."""
    path = pip_path()
    return (f"{path[0]}/pip",) if path else ("-m", "pip")


def pip_path() -> tuple[str, ...]:
    """What must be added to the import path for pip to be found."""
    if importlib.util.find_spec("pip") is not None:
        return ()
    bundled = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not bundled:
        raise InstallError(
            "Environments are installed with pip, and there is none; install pip beside Proctor."
        )
    return (str(bundled[-1]),)


async def load_pip_settings() -> dict[str, str]:
    """By name, as `pip config list` tells them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *find_pip(), "config", "list"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(CONFIG_SECONDS):
            listing, _ = await process.communicate()
    except TimeoutError as error:
        raise InstallError("`pip config list` does not end; try it on this machine.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return parse_settings(listing.decode(errors="replace"))


def parse_settings(listing: str) -> dict[str, str]:
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in listing.splitlines():
        key, _, quoted = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found and quoted:
            found[section][name] = " ".join(str(ast.literal_eval(quoted)).split())
    settings = {name: value for section in SECTIONS for name, value in found[section].items()}
    return {name: value for name, value in settings.items() if name not in OWN_SETTINGS}
