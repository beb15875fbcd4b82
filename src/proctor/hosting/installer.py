"""How packages are installed on this machine: which pip there is, and how its operator has set it up.

pip runs behind walls, where no configuration file can be seen: what those say is told to it by variables, and
folders they name are shown. Knows nothing of environments.
"""

from __future__ import annotations

import ast
import asyncio
import ensurepip
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from proctor.errors import InstallError

SECTIONS = ("global", "install", ":env:")
"""Of pip's configuration, those that concern `pip install`; a later one stands above an earlier one."""
INDEXES = ("index-url", "extra-index-url")
WITH_PATHS = (*INDEXES, "find-links", "cert", "client-cert", "constraint")
"""Settings that name what pip reads, and that is therefore shown to it."""
OWN = ("cache-dir", "config-file", "log", "prefix", "python", "report", "root", "src", "target", "user")
"""Settings that would send it somewhere else than where a virtual environment is made."""
CONFIG_SECONDS = 30.0
PASSED_ON = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
)


class Installer(NamedTuple):
    """pip, as it is to be run behind walls."""

    words: tuple[str, ...]
    """What comes after the interpreter."""
    variables: Mapping[str, str]
    paths: tuple[str, ...]
    """What it must be able to read."""


async def installer() -> Installer:
    settings = await pip_settings()
    variables = {f"PIP_{name.upper().replace('-', '_')}": value for name, value in settings.items()}
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    always = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",  # what one environment's build leaves there, another's would install
        "PIP_NO_INPUT": "1",
        "PIP_PROGRESS_BAR": "off",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    certificates = [value for name, value in passed_on.items() if name.isupper() and value.startswith("/")]
    paths = (*folders_named(settings), *certificates)
    return Installer(pip_words(), {**passed_on, **variables, **always}, tuple(filter(os.path.exists, paths)))


def pip_words() -> tuple[str, ...]:
    """The pip that is installed beside us, or else the one that comes with Python."""
    if importlib.util.find_spec("pip") is not None:
        return ("-m", "pip")
    bundled = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not bundled:
        raise InstallError(
            "Environments are installed with pip, and there is none; install pip beside Proctor."
        )
    return (str(bundled[-1] / "pip"),)


async def pip_settings() -> dict[str, str]:
    """By name, as `pip config list` tells them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *pip_words(), "config", "list"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(CONFIG_SECONDS):
            told, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise InstallError("`pip config list` does not end; try it on this machine.") from error
    return read_settings(told.decode(errors="replace"))


def read_settings(told: str) -> dict[str, str]:
    found: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in told.splitlines():
        key, _, quoted = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in found and quoted:
            found[section][name] = " ".join(str(ast.literal_eval(quoted)).split())
    settings = {name: value for section in SECTIONS for name, value in found[section].items()}
    return {name: value for name, value in settings.items() if name not in OWN}


def folders_named(settings: Mapping[str, str]) -> Iterator[str]:
    """Files and folders that the settings name. The pages of an index lead to files that lie beside it."""
    for name in WITH_PATHS:
        for word in settings.get(name, "").split():
            path = unquote(urlsplit(word).path) if word.startswith("file://") else word
            if path.startswith("/"):
                parent = str(Path(path).parent)
                yield parent if name in INDEXES and parent != "/" else path
