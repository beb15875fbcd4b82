"""How this machine fetches and installs packages: which pip there is, and how its operator configured it.

The operator's indexes, certificates, proxies and credentials are for fetching, which happens outside the
sandbox and executes nothing that was fetched. Installing happens inside a sandbox and sees none of them.
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
"""The sections of pip's configuration that apply to `pip install`; later ones override earlier ones."""
OWN_SETTINGS = (
    *("cache-dir", "config-file", "dry-run", "log", "no-cache-dir", "no-deps", "prefix", "python", "quiet"),
    *("report", "require-hashes", "require-virtualenv", "requirement", "root", "src", "target", "user"),
)
"""Settings that would redirect pip, or change what it does here."""
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
"""For pip in a sandbox: it gets files, and has no index."""


async def fetch_variables(temporary: Path, cache: Path) -> dict[str, str]:
    """The environment variables of pip when it fetches, including credentials."""
    settings = await load_pip_settings()
    variables = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    passed_on = {name: os.environ[name] for name in FORWARDED_VARIABLES if name in os.environ}
    own = {"PIP_CACHE_DIR": str(cache), "TMPDIR": str(temporary)}
    return {**passed_on, **variables, **ALWAYS, **own}


def find_pip() -> tuple[str, ...]:
    """How to run pip: the one installed beside Proctor, or else the one bundled with Python."""
    path = pip_path()
    return (f"{path[0]}/pip",) if path else ("-m", "pip")


def pip_path() -> tuple[str, ...]:
    """What to add to the import path so that pip is found."""
    if importlib.util.find_spec("pip") is not None:
        return ()
    bundled = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not bundled:
        raise InstallError("Installing environments needs pip; install it beside Proctor.")
    return (str(bundled[-1]),)


async def load_pip_settings() -> dict[str, str]:
    """By name, as printed by `pip config list`."""
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
        raise InstallError("`pip config list` does not end; run it on this machine to see why.") from error
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
